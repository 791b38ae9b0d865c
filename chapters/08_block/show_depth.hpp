// What many layers on top of each other make of a text and of a gradient. For main.cpp.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "08_block/depth.hpp"
#include "linalg.hpp"
#include "print.hpp"
#include "rows.hpp"

namespace t2t {

/// Digits on which machines agree: in what has grown a million times, rounding errors have grown as
/// well. A share of a stream that is all zeros is none: "-".
inline std::string of_size(double value) {
  if (std::isnan(value)) return "-";
  if (value > 1e6) return "> 1,000,000";
  if (value > 1000) return "> 1,000";
  if (value >= 100) return fmt::format("{:.0f}", 10 * std::round(value / 10));
  if (value >= 10) return fmt::format("{:.0f}", value);
  if (value == 0) return "0";
  return value < 0.01 ? "< 0.01" : fmt::format("{:.2f}", value);
}

/// The same for sizes that shrink far, without rounding errors taking part.
inline std::string of_gradient(double value) {
  return value > 0 && value < 0.01 ? fmt::format("{:.0e}", value) : of_size(value);
}

/// What is measured of stacks, after 0, 1, 2 … L layers.
struct Depths {
  std::vector<Depth> pre, post, norms, sums, neither;
};

/// Of each layer of a stack. ReLU, since SwiGLU's result grows with the square of its input: where
/// no norm holds that, it leaves float's range after a few layers.
inline BlockSettings stack_settings(std::size_t C) {
  BlockSettings settings = llama_style(C, 4, 2, 4 * C);
  settings.activation = Activation::relu;
  return settings;
}

inline std::vector<BlockWeights> draw_layers(const BlockSettings& settings, std::size_t L,
                                             float residual_scale, Random& random) {
  std::vector<BlockWeights> layers;
  layers.reserve(L);
  for (std::size_t l = 0; l < L; ++l)
    layers.push_back(draw_block(settings, random, residual_scale));
  return layers;
}

/// Random changes of a text, sent up to measure the gradient.
inline std::vector<Tensor<2>> draw_changes(const Tensor<2>& text, Random& random) {
  std::vector<Tensor<2>> changes;
  for (int i = 0; i < 8; ++i) changes.push_back(random.normal<2>({text.shape(0), text.shape(1)}));
  return changes;
}

inline Depths all_depths(const Tensor<2>& x, std::size_t L, float residual_scale, Random& random) {
  const BlockSettings settings = stack_settings(x.shape(1));
  const std::vector<BlockWeights> layers = draw_layers(settings, L, residual_scale, random);
  const std::vector<Tensor<2>> changes = draw_changes(x, random);
  const auto of = [&](Joined joined) { return depths(joined, x, settings, layers, changes); };
  return {of(Joined::pre_norm), of(Joined::post_norm), of(Joined::norms_only),
          of(Joined::sums_only), of(Joined::neither)};
}

inline void show_sizes(const Depths& of, const std::vector<std::size_t>& shown) {
  print_section(fmt::format("The stream through {} layers", of.pre.size() - 1));
  Table sizes({">layers", ">size: pre-norm", ">post-norm", ">apart: pre-norm", ">post-norm",
               ">norms, no sums"});
  for (const std::size_t l : shown)
    sizes.add({std::to_string(l), of_size(of.pre[l].size), of_size(of.post[l].size),
               of_size(of.pre[l].spread), of_size(of.post[l].spread), of_size(of.norms[l].spread)});
  sizes.print();
  fmt::print("\n");
  print_paragraph(
      "Size: the root mean square of the stream after so many layers. Apart: the share of the "
      "stream that differs from token to token. At 0 all tokens have the same vector, and no later "
      "layer can tell them apart.");
}

inline void show_gradients(const Depths& of, const std::vector<std::size_t>& shown) {
  print_section(fmt::format("A gradient on its way down through {} layers", of.pre.size() - 1));
  Table table({">layers", ">neither", ">sums only", ">norms only", ">post-norm", ">pre-norm",
               ">straight: post", ">pre"});
  for (const std::size_t l : shown)
    table.add({std::to_string(l), of_gradient(of.neither[l].arrives),
               of_gradient(of.sums[l].arrives), of_gradient(of.norms[l].arrives),
               of_gradient(of.post[l].arrives), of_gradient(of.pre[l].arrives),
               of_gradient(of.post[l].straight), of_gradient(of.pre[l].straight)});
  table.print();
  fmt::print("\n");
  print_paragraph(
      "The size with which a random gradient of size 1 at the output arrives at the text, for "
      "stacks of so many layers: the root of the mean square over 8 random changes. Stacks with "
      "norms end with one more norm. Straight: the part of the gradient that comes through the "
      "sums and the norms' divisions alone, and through no matrix.");
}

/// The gradient that arrives through all layers, for other weights of the same kind.
inline void show_draws(const Tensor<2>& x, std::size_t L, float residual_scale, Random& random) {
  print_section(fmt::format("The gradient through {} layers, for seven draws of the weights", L));
  const BlockSettings settings = stack_settings(x.shape(1));
  std::vector<double> post, pre;
  for (int draw = 0; draw < 7; ++draw) {
    const std::vector<BlockWeights> layers = draw_layers(settings, L, residual_scale, random);
    const std::vector<Tensor<2>> changes = draw_changes(x, random);
    post.push_back(depths(Joined::post_norm, x, settings, layers, changes).back().arrives);
    pre.push_back(depths(Joined::pre_norm, x, settings, layers, changes).back().arrives);
  }
  std::ranges::sort(post), std::ranges::sort(pre);
  Table table({"", ">smallest", ">median", ">largest"});
  table.add({"post-norm", of_gradient(post[0]), of_gradient(post[3]), of_gradient(post[6])});
  table.add({"pre-norm", of_gradient(pre[0]), of_gradient(pre[3]), of_gradient(pre[6])});
  table.print();
}

inline void show_depth(const Tensor<2>& x,  // [T, C]
                       std::size_t L, float residual_scale, Random& random) {
  // Products this small are done before a second thread is awake.
  const int threads = int(thread_count());
  set_threads(1);
  const Depths of = all_depths(x, L, residual_scale, random);
  std::vector<std::size_t> shown = {0};
  for (std::size_t l = 1; l <= L; l *= 2) shown.push_back(l);
  show_sizes(of, shown);
  show_gradients(of, shown);
  show_draws(x, L, residual_scale, random);
  set_threads(threads);
}

}  // namespace t2t
