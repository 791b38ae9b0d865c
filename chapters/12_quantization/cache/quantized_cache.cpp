#include "12_quantization/cache/quantized_cache.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>

#include "06_gqa/fast/decode_attention.hpp"
#include "rows.hpp"
#include "shapes.hpp"

namespace t2t {

static constexpr std::size_t block_of_row = 32;  // numbers that share a scale
/// Rows that decode converts to floats at a time. With D = 64 their keys and values take 64 KiB,
/// which a second-level cache holds together with the rest.
static constexpr std::size_t rows_at_a_time = 128;

std::size_t whole_blocks(std::size_t D) { return (D + 31) / block_of_row * block_of_row; }

QuantizedHeads make_quantized_heads(std::size_t bits, std::size_t G, std::size_t S, std::size_t D) {
  expect(bits == 4 || bits == 8, "bits", "4 or 8", bits);
  expect(G >= 1, "G, the number of key and value heads", "at least 1", G);
  expect(S >= 1, "S, the positions of the cache", "at least 1", S);
  expect(D >= 1, "D, the width of a head", "at least 1", D);
  QuantizedHeads heads{bits, G, S, D, {}, {}, {}};
  heads.scales.resize(G * S * heads.blocks());
  heads.q.resize(heads.scales.size() * heads.block_bytes());
  if (bits == 4) heads.minima.resize(heads.scales.size());
  return heads;
}

std::size_t bytes(const QuantizedHeads& heads) {
  return heads.q.size() + 2 * (heads.scales.size() + heads.minima.size());
}

double quantized_number_bytes(std::size_t bits) {
  return (double(bits) + (bits == 4 ? 1 : 0.5)) / 8;  // 16 bits for 32 numbers are half a bit
}

/// A float from its upper 16 bits, and the upper 16 bits of a float, rounded towards 0 or away from
/// it.
static float upper_half(std::uint16_t bits) {
  return std::bit_cast<float>(std::uint32_t(bits) << 16);
}
static std::uint16_t towards_zero(float x) {
  return std::uint16_t(std::bit_cast<std::uint32_t>(x) >> 16);
}
static std::uint16_t from_zero(float x) {
  return std::uint16_t((std::bit_cast<std::uint32_t>(x) + 0xffff) >> 16);
}

/// A block of up to 32 elements, rounded.
struct Rounded {
  std::uint16_t scale, minimum;  // as they are stored
  int q[block_of_row];
};

/// The scale and the minimum of a block. One NaN or infinity makes the scale NaN.
static Rounded shared_of(ConstRow x, std::size_t bits) {
  if (!std::ranges::all_of(x, [](float value) { return std::isfinite(value); }))
    return {towards_zero(std::numeric_limits<float>::quiet_NaN()), 0, {}};
  const float lowest = std::ranges::min(x), highest = std::ranges::max(x);
  if (bits == 8) return {from_zero(std::max(-lowest, highest) / 127), 0, {}};
  const std::uint16_t minimum = lowest < 0 ? from_zero(lowest) : towards_zero(lowest);
  return {from_zero((highest - upper_half(minimum)) / 15), minimum, {}};
}

/// Rounds with the stored scale and minimum, so that an element is off by half a step at most. When
/// the scale is 0, or nearly so, and when it is NaN, each q is 0.
static Rounded round_block(ConstRow x, std::size_t bits) {
  Rounded rounded = shared_of(x, bits);
  const float scale = upper_half(rounded.scale), minimum = upper_half(rounded.minimum);
  if (scale > 1e-30f)
    for (std::size_t i = 0; i < x.size(); ++i)
      rounded.q[i] = int(std::nearbyint((x[i] - minimum) / scale));
  return rounded;
}

/// Writes 4-bit integers as 8 units of 16 bits: unit i holds integers i, 8 + i, 16 + i and 24 + i,
/// the first in its lowest bits.
static void put_units(const int* q, std::uint8_t* to) {
  for (std::size_t i = 0; i < 8; ++i) {
    std::uint16_t unit = 0;
    for (std::size_t j = 0; j < 4; ++j) unit |= std::uint16_t(q[8 * j + i] << 4 * j);
    std::memcpy(to + 2 * i, &unit, 2);
  }
}

void store_rows(ConstMatrix x, std::size_t first, QuantizedHeads& to) {
  expect_shape("x", x, {x.rows, to.G * to.D});
  if (first > to.S || x.rows > to.S - first)
    throw std::invalid_argument(fmt::format(
        "cache: {} rows and T = {} more, wanted at most S = {} in all", first, x.rows, to.S));
  for_each_row(x.rows, x.cols, [&](std::size_t t) {
    for (std::size_t g = 0; g < to.G; ++g) {
      const ConstRow numbers = x.head(g, to.D).row(t);
      for (std::size_t b = 0; b < to.blocks(); ++b) {
        const std::size_t d = b * block_of_row, at = (g * to.S + first + t) * to.blocks() + b;
        const Rounded rounded =
            round_block(numbers.subspan(d, std::min(block_of_row, to.D - d)), to.bits);
        to.scales[at] = rounded.scale;
        if (to.bits == 4) to.minima[at] = rounded.minimum;
        std::uint8_t* const q = &to.q[at * to.block_bytes()];
        if (to.bits == 8)
          std::ranges::copy(rounded.q, q);  // each as its lowest 8 bits
        else
          put_units(rounded.q, q);
      }
    }
  });
}

static void load_block(const QuantizedHeads& from, std::size_t at, float* to) {
  const float scale = upper_half(from.scales[at]);
  const std::uint8_t* const q = from.q.data() + at * from.block_bytes();
  if (from.bits == 8) {
#pragma omp simd
    for (std::size_t i = 0; i < block_of_row; ++i) to[i] = scale * float(std::int8_t(q[i]));
    return;
  }
  const float minimum = upper_half(from.minima[at]);
  std::uint16_t stored[8];
  std::memcpy(stored, q, sizeof(stored));
  std::uint32_t units[8];  // g++ needs them so wide to use whole registers
  std::ranges::copy(stored, units);
#pragma omp simd
  for (std::size_t i = 0; i < 8; ++i)
    for (std::size_t j = 0; j < 4; ++j)
      to[8 * j + i] = scale * float(std::int32_t(units[i] >> 4 * j & 15)) + minimum;
}

void load_rows(const QuantizedHeads& from, std::size_t g, std::size_t first, Matrix to) {
  const std::size_t blocks = from.blocks();
  for (std::size_t s = 0; s < to.rows; ++s)
    for (std::size_t b = 0; b < blocks; ++b)
      load_block(from, (g * from.S + first + s) * blocks + b,
                 to.data + s * to.stride + b * block_of_row);
}

static std::size_t parts_of(std::size_t S) { return (S + rows_at_a_time - 1) / rows_at_a_time; }

QuantizedScratch::QuantizedScratch(std::size_t S, std::size_t H, std::size_t D)
    : of_thread(empty(thread_count(), rows_at_a_time * (2 * whole_blocks(D) + H))),
      stretches(empty(H * parts_of(S), D)),
      log_sums(empty(H, parts_of(S))) {}

void attend_quantized(ConstRow q, const QuantizedCache& cache, KeyRange seen, Row out,
                      QuantizedScratch& scratch, const ScoreRule& rule) {
  const std::size_t G = cache.keys.G, D = cache.keys.D, H = q.size() / D, N = H / G;
  const std::size_t P = parts_of(seen.size()), wide = whole_blocks(D);
  const ConstMatrix queries(q.data(), H, D, D);                   // [H, D]: the row as its heads
  const Matrix stretches(scratch.stretches.data(), H, D, P * D);  // [H, D], of stretch 0
  const Matrix log_sums(scratch.log_sums.data(), H, P, P);        // [H, P]

  for_each_task(P * G, rows_at_a_time * D * N, [&](std::size_t i, std::size_t thread) {
    const std::size_t g = i / P, p = i % P, first = seen.begin + p * rows_at_a_time;
    const std::size_t count = std::min(rows_at_a_time, seen.end - first);
    float* const floats = row(scratch.of_thread, thread).data();
    const Matrix keys(floats, count, D, wide),
        values(floats + rows_at_a_time * wide, count, D, wide);
    load_rows(cache.keys, g, first, keys);
    load_rows(cache.values, g, first, values);

    Matrix of_stretch = stretches.rows_from(g * N, N);  // [N, D]
    of_stretch.data += p * D;                           // of stretch p
    attend_stretch(queries.rows_from(g * N, N), keys, values,
                   {floats + 2 * rows_at_a_time * wide, N, count, count}, of_stretch,
                   log_sums.rows_from(g * N, N).cols_from(p, 1), rule);
  });
  for (std::size_t h = 0; h < H; ++h)
    join_stretches({stretches.row(h).data(), P, D, D}, log_sums.row(h), out.subspan(h * D, D));
}

}  // namespace t2t
