// The solutions to the problems on paper of docs/12_quantization.md.
#include "program/solutions.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <initializer_list>

#include "05_kv_cache/kv_cache.hpp"
#include "09_language_model/accounts/accounts.hpp"
#include "12_quantization/cache/quantized_cache.hpp"
#include "12_quantization/formats/quantize.hpp"
#include "memory.hpp"
#include "program/print.hpp"

namespace t2t {

/// These weights of a block of 32, whose other weights are 0, rounded and back: [1, 32].
static Tensor<2> rounded(TensorType type, std::initializer_list<float> numbers) {
  Tensor<2> x = xt::zeros<float>({1, 32}), back = empty(1, 32);
  std::ranges::copy(numbers, x.begin());
  dequantize_rows(type, quantize_rows(type, x), back);
  return back;
}

static Solution block_of_q4_0() {
  const float scale = 6 / -8.f;
  const Tensor<2> back = rounded(TensorType::q4_0, {6, -3, 1, -5.9f});
  const float steps[] = {6 / scale, -3 / scale, 1 / scale, -5.9f / scale};
  return {"block of Q4_0",
          fmt::format("The scale is 6 / -8 = {:g}. The weights are {:.3g} steps, of which the last "
                      "is cut off at 7: {:g}.",
                      scale, fmt::join(steps, ", "), fmt::join(row(back, 0).first(4), ", "))};
}

static Solution one_outlier() {
  const Tensor<2> of_8 = rounded(TensorType::q8_0, {8, 0.1f});
  const Tensor<2> of_4 = rounded(TensorType::q4_0, {8, 0.1f});
  return {
      "one outlier",
      fmt::format("Q8_0's step is 8 / 127 = {:.3f}: 0.1 is {:.2f} steps, rounded to {:.0f}, or "
                  "{:.3f}. Q4_0's step is 1, and 0.1 becomes {:g}.",
                  8 / 127.0, 0.1 * 127 / 8, of_8(0, 1) * 127 / 8, of_8(0, 1), of_4(0, 1) + 0.0)};
}

static Solution bits_a_weight() {
  const auto bits = [](TensorType type) {
    const BlockLayout block = block_layout(type);
    return 8 * double(block.bytes) / double(block.numbers);
  };
  return {"bits per weight", fmt::format("{:g}, {:g} and {:g} bits.", bits(TensorType::q4_0),
                                         bits(TensorType::q4_k), bits(TensorType::q6_k))};
}

/// Llama 3.1 8B: bytes of its matrices in Q4_K, and of a position in its cache in 16 bits.
static double weights() {
  const Parameters count = count_parameters(
      {.block = llama_style(4096, 32, 8, 14336), .L = 32, .V = 128256, .T_max = 131072});
  const BlockLayout block = block_layout(TensorType::q4_k);
  return double((total(count) - count.norms) / block.numbers * block.bytes);
}
static double position() { return double(kv_cache_bytes(32, 8, 1, 128, 2)); }

static Solution cache_and_weights() {
  return {"cache and weights",
          fmt::format("The matrices take {}, a position 2 · 32 · 8 · 128 · 2 = {} bytes: {} "
                      "positions. At 131,072 the cache takes {}.",
                      bytes_text(weights()), with_commas(std::size_t(position())),
                      with_commas(std::size_t(weights() / position())),
                      bytes_text(131072 * position()))};
}

static Solution cache_in_4_bits() {
  const double a_number = quantized_number_bytes(4);
  return {"cache in 4 bits",
          fmt::format("With scale and minimum an element takes {:g} bits, so the cache is {:.1f} "
                      "times smaller, not 4 times: {}.",
                      8 * a_number, 2 / a_number, bytes_text(131072 * position() * a_number / 2))};
}

std::vector<Solution> solutions() {
  return {block_of_q4_0(), one_outlier(), bits_a_weight(), cache_and_weights(), cache_in_4_bits()};
}

}  // namespace t2t
