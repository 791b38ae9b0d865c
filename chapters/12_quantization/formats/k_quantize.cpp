#include "12_quantization/formats/k_quantize.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "10_pretrained/file/dequantize.hpp"
#include "12_quantization/packed/stored_scale.hpp"

namespace t2t {

int nearest(float v, const Grid& grid) {
  if (!(v > float(grid.lowest))) return grid.lowest;
  return v < float(grid.highest) ? int(std::nearbyint(v)) : grid.highest;
}

Fit range_fit(ConstRow x, const Grid& grid) {
  if (grid.minimum == Grid::none) {
    const auto by_size = [](float a, float b) { return std::abs(a) < std::abs(b); };
    return {*std::ranges::max_element(x, by_size) / float(grid.lowest), 0};
  }
  float lowest = std::ranges::min(x);
  if (grid.minimum == Grid::zero_or_less) lowest = std::min(lowest, 0.0f);
  return {(std::ranges::max(x) - lowest) / float(grid.highest), lowest};
}

/// The fits of a block's parts, each of so many weights.
template <std::size_t parts>
static std::array<Fit, parts> range_fits(ConstRow x, const Grid& grid) {
  const std::size_t numbers = 256 / parts;
  std::array<Fit, parts> fits;
  for (std::size_t j = 0; j < parts; ++j)
    fits[j] = range_fit(x.subspan(j * numbers, numbers), grid);
  return fits;
}

void to_q4_k(ConstRow x, std::uint8_t* to) { put_q4_k(x, range_fits<8>(x, grid_q4_k), to); }
void to_q6_k(ConstRow x, std::uint8_t* to) { put_q6_k(x, range_fits<16>(x, grid_q6_k), to); }

/// Writes value as an F16 and returns what was written.
static float put_rounded(float value, std::uint8_t* to) {
  put_half(value, to);
  return half_at(to);
}

/// 8 s and 8 m of six bits each in 12 bytes.
static void put_six_bits(const std::array<int, 8>& s, const std::array<int, 8>& m,
                         std::uint8_t* to) {
  for (std::size_t j = 0; j < 4; ++j) {
    to[j] = std::uint8_t(s[4 + j] >> 4 << 6 | s[j]);
    to[4 + j] = std::uint8_t(m[4 + j] >> 4 << 6 | m[j]);
    to[8 + j] = std::uint8_t((m[4 + j] & 15) << 4 | (s[4 + j] & 15));
  }
}

void put_q4_k(ConstRow x, std::span<const Fit, 8> fits, std::uint8_t* to) {
  // The largest scale and the largest minimum become 63. A minimum is stored without its sign.
  float scale = 0, lowest = 0;
  for (const Fit& fit : fits)
    scale = std::max(scale, fit.scale), lowest = std::min(lowest, fit.minimum);
  const float D = put_rounded(scale / 63, to), M = put_rounded(-lowest / 63, to + 2);

  constexpr Grid six_bits = {0, 63, Grid::none};
  std::array<int, 8> s, m;
  for (std::size_t j = 0; j < 8; ++j) {
    s[j] = nearest(fits[j].scale * inverse(D), six_bits);
    m[j] = nearest(-fits[j].minimum * inverse(M), six_bits);
  }
  put_six_bits(s, m, to + 4);

  // 32 bytes hold the q of 32 numbers in their low halves and of the next 32 in their high halves.
  std::fill_n(to + 16, 128, std::uint8_t(0));
  for (std::size_t j = 0; j < 8; ++j) {
    const float per_step = inverse(D * float(s[j])), minimum = M * float(m[j]);
    std::uint8_t* halves = to + 16 + j / 2 * 32;
    for (std::size_t i = 0; i < 32; ++i) {
      const int q = nearest((x[32 * j + i] + minimum) * per_step, grid_q4_k);
      halves[i] |= std::uint8_t(q << j % 2 * 4);
    }
  }
}

void put_q6_k(ConstRow x, std::span<const Fit, 16> fits, std::uint8_t* to) {
  // The scale of largest size becomes −128, which there is one more of than of 127.
  float scale = 0, size = 0;  // (clang 19 would forget an abs of the scale so far)
  for (const Fit& fit : fits)
    if (std::abs(fit.scale) > size) scale = fit.scale, size = std::abs(scale);
  const float D = put_rounded(scale / -128, to + 208);

  // 4 bits of a q stand in the first 128 bytes, 2 in the next 64, s behind them (k_quants.hpp).
  std::fill_n(to, 192, std::uint8_t(0));
  for (std::size_t g = 0; g < 16; ++g) {
    const int s = nearest(fits[g].scale * inverse(D), {-128, 127, Grid::none});
    const float per_step = inverse(D * float(s));
    to[192 + g] = std::uint8_t(std::int8_t(s));
    std::uint8_t* lower = to + g / 8 * 64 + g % 4 * 16;
    std::uint8_t* upper = to + 128 + g / 8 * 32 + g % 2 * 16;
    for (std::size_t i = 0; i < 16; ++i) {
      const int q = nearest(x[16 * g + i] * per_step, grid_q6_k) + 32;
      lower[i] |= std::uint8_t((q & 15) << g % 8 / 4 * 4);
      upper[i] |= std::uint8_t(q >> 4 << g % 8 / 2 * 2);
    }
  }
}

}  // namespace t2t
