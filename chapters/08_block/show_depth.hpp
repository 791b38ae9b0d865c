// What many blocks on top of each other make of a text, and of a small change of it. For main.cpp.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <string>
#include <vector>

#include "08_block/depth.hpp"
#include "linalg.hpp"
#include "print.hpp"
#include "rows.hpp"

namespace t2t {

/// Digits on which machines agree: what is far off the scale grew from rounding errors. A share of
/// a stream that is all zeros is none: "-".
inline std::string of_size(double value) {
  if (std::isnan(value)) return "-";
  if (value > 1e6) return "> 1,000,000";
  if (value > 1000) return "> 1,000";
  if (value >= 100) return fmt::format("{:.0f}", 10 * std::round(value / 10));
  if (value >= 10) return fmt::format("{:.0f}", value);
  if (value == 0) return "0";
  return value < 0.01 ? "< 0.01" : fmt::format("{:.2f}", value);
}

/// What is measured of stacks joined in the three ways, after 0, 1, 2 … L layers.
struct Depths {
  std::vector<Depth> pre, post, none;
};

/// Of each layer of a stack.
inline BlockSettings stack_settings(std::size_t C) {
  return llama_style(C, 4, 2, gated_width(C, 1));
}

inline Depths all_depths(const Tensor<2>& x, std::size_t L, float residual_scale, Random& random) {
  const BlockSettings settings = stack_settings(x.shape(1));
  std::vector<BlockWeights> layers;
  layers.reserve(L);
  for (std::size_t l = 0; l < L; ++l)
    layers.push_back(draw_block(settings, random, residual_scale));
  const auto of = [&](Joined joined) { return depths(joined, x, settings, layers, random); };
  return {of(Joined::pre_norm), of(Joined::post_norm), of(Joined::without_sums)};
}

inline void show_sizes(const Depths& of, const std::vector<std::size_t>& shown) {
  print_section(fmt::format("The stream through {} layers", of.pre.size() - 1));
  Table sizes({">layer", ">size: pre-norm", ">post-norm", ">apart: pre-norm", ">post-norm",
               ">without sums"});
  for (const std::size_t l : shown)
    sizes.add({std::to_string(l), of_size(of.pre[l].size), of_size(of.post[l].size),
               of_size(of.pre[l].spread), of_size(of.post[l].spread), of_size(of.none[l].spread)});
  sizes.print();
  fmt::print("\n");
  print_paragraph(
      "Size: root mean square, after so many layers. Pre-norm only adds, so the stream grows, and "
      "each layer's share of it gets smaller; post-norm brings every sum back to 1. Apart: the "
      "share of the stream that is not common to all tokens. At 0 all tokens are one vector, and "
      "what was read is lost.");
}

inline void show_changes(const Depths& of, const std::vector<std::size_t>& shown) {
  print_section(fmt::format("A change of the text, felt through {} layers", of.pre.size() - 1));
  Table felt(
      {">layer", ">felt: pre-norm", ">post-norm", ">without sums", ">straight: pre-norm", ">post"});
  for (const std::size_t l : shown)
    felt.add({std::to_string(l), of_size(of.pre[l].felt), of_size(of.post[l].felt),
              of_size(of.none[l].felt), of_size(of.pre[l].straight), of_size(of.post[l].straight)});
  felt.print();
  fmt::print("\n");
  print_paragraph(
      "A small random change of all tokens: its size as a share of the stream's, against what it "
      "was in the text. Straight: the same of what came up through sums and norms alone, through "
      "no layer's matrices. Without sums nothing does. A gradient goes the same way back.");
}

inline void show_depth(const Tensor<2>& x,  // [T, C]
                       std::size_t L, float residual_scale, Random& random) {
  // Products this small are done before a second thread is awake.
  const int threads = int(thread_count());
  set_threads(1);
  const Depths of = all_depths(x, L, residual_scale, random);
  set_threads(threads);
  std::vector<std::size_t> shown = {0};
  for (std::size_t l = 1; l <= L; l *= 2) shown.push_back(l);
  show_sizes(of, shown);
  show_changes(of, shown);
}

}  // namespace t2t
