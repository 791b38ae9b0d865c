#include "04_causal_attention/shows/show_kernels.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>

#include "04_causal_attention/kernels/attention_naive.hpp"
#include "04_causal_attention/multi_head.hpp"
#include "cuda/device.hpp"
#include "linalg.hpp"
#include "program/print.hpp"

namespace t2t {

/// The formula, head by head, [T, H·D].
static Tensor<2> by_formula(const Tensor<2>& q, const Tensor<2>& k, const Tensor<2>& v,
                            std::size_t H) {
  const Tensor<3> q_heads = split_heads(q, H), k_heads = split_heads(k, H);  // [H, T, D]
  Tensor<3> heads = split_heads(v, H);                                       // [H, T, D]
  for (std::size_t h = 0; h < H; ++h)
    xt::view(heads, h) = attention(xt::view(q_heads, h), xt::view(k_heads, h),
                                   Tensor<2>(xt::view(heads, h)), Mask::causal);
  return merge_heads(heads);
}

/// How far apart two results in float32 may be. A sum of n products is off by at most n roundings
/// of the sum of their magnitudes. An error e of all scores changes a weight by at most 2·e of it.
static double bound(const Tensor<2>& q, const Tensor<2>& k, const Tensor<2>& v, std::size_t D) {
  const double rounding = std::numeric_limits<float>::epsilon(), S = double(k.shape(0));
  const auto largest = [](const Tensor<2>& x) { return double(xt::amax(xt::abs(x))()); };
  const double score = std::sqrt(double(D)) * largest(q) * largest(k);
  const double score_error = double(D + 2) * rounding * score;
  return 2 * largest(v) * (2 * score_error + (2 * S + 16) * rounding);
}

static std::string dimensions(dim3 size) {
  std::string text = std::to_string(size.x);
  if (size.y > 1 || size.z > 1) text += fmt::format(" × {}", size.y);
  if (size.z > 1) text += fmt::format(" × {}", size.z);
  return text;
}

static void add_launch(Table& table, const char* kernel, const char* what, const Launch& launch) {
  const auto count = [](dim3 size) { return std::size_t(size.x) * size.y * size.z; };
  table.add({kernel, dimensions(launch.grid), dimensions(launch.block),
             with_commas(count(launch.grid) * count(launch.block)), what});
}

void show_kernels(const Program& program, const Tensor<2>& x, std::size_t H) {
  const std::size_t C = x.shape(1), D = C / H;
  const std::size_t T = has_gpu() ? x.shape(0) : std::min<std::size_t>(x.shape(0), 32);
  const Tensor<2> tokens = xt::view(x, xt::range(0, T), xt::all());  // [T, C]
  Random random(program.seed());
  const AttentionWeights weights = draw_attention_weights(C, random);
  const Tensor<2> q = matmul_bt(tokens, weights.w_q);  // [T, H·D]
  const Tensor<2> k = matmul_bt(tokens, weights.w_k);  // [T, H·D]
  const Tensor<2> v = matmul_bt(tokens, weights.w_v);  // [T, H·D]

  // [caller]
  const auto numbers = [](const Tensor<2>& of) { return std::span(of.data(), of.size()); };
  DeviceBuffer<float> on_q(numbers(q)), on_k(numbers(k)), on_v(numbers(v)), on_out(v.size());
  const Strides strides = row_major(int(T), int(H), int(D));
  const AttentionCall<float> call{
      on_q.data(), on_k.data(), on_v.data(), on_out.data(), strides, strides, strides, strides,
      1,           int(T),      int(T),      int(H),        int(H),  int(D),  true,    0};
  DeviceBuffer<float> scores(naive_scores(call));  // [H, T, T]
  attend_naive(call, scores.data());
  // [/caller]
  Tensor<2> out = empty(T, C);
  std::ranges::copy(on_out.download(), out.begin());
  program.save("out_by_kernels", out);

  print_section("The same on a GPU");
  const NaiveLaunches launches = naive_launches(call);
  Table table({"kernel", ">blocks", ">threads per block", ">threads", "a thread computes"});
  add_launch(table, "scores", "one score", launches.scores);
  add_launch(table, "softmax", "every 32nd weight of a row", launches.softmax);
  add_launch(table, "values", "every 32nd channel of a row", launches.values);
  table.print();

  const Tensor<2> apart = xt::abs(out - by_formula(q, k, v, H));
  const double furthest = double(xt::amax(apart)()), most = bound(q, k, v, D);
  if (!(furthest <= most))
    throw std::runtime_error(
        fmt::format("the kernels' result differs from the formula's by {}, and rounding explains "
                    "only {}",
                    furthest, most));
  fmt::print("\n");
  print_paragraph(fmt::format(
      "The first {} tokens, {} heads of width {}. The device: {}. The result differs from the "
      "formula's by no more than rounding explains.",
      T, H, D, device_name()));
}

}  // namespace t2t
