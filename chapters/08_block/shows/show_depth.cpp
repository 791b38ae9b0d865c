#include "08_block/shows/show_depth.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <compare>
#include <string>
#include <vector>

#include "07_swiglu/feed_forward.hpp"
#include "08_block/depth/depth.hpp"
#include "linalg.hpp"
#include "program/print.hpp"
#include "rows.hpp"

namespace t2t {

/// Digits on which machines agree: in what has grown a million times, rounding errors have grown as
/// well. A share of a stream that is all zeros is none: "-".
static std::string of_size(double value) {
  if (std::isnan(value)) return "-";
  if (value > 1e6) return "> 1,000,000";
  if (value > 1000) return "> 1,000";
  if (value >= 100) return fmt::format("{:.0f}", 10 * std::round(value / 10));
  if (value >= 10) return fmt::format("{:.0f}", value);
  if (value == 0) return "0";
  return value < 0.01 ? "< 0.01" : fmt::format("{:.2f}", value);
}

/// The same for sizes that shrink far, without rounding errors taking part.
static std::string of_gradient(double value) {
  return value > 0 && value < 0.01 ? fmt::format("{:.0e}", value) : of_size(value);
}

/// What is measured of five stacks with the same weights, after 0, 1, 2 … L layers.
struct Depths {
  std::vector<Depth> pre, post, norms, sums, neither;
};

/// One measure of one stack after l layers, for each draw of the weights, in ascending order.
static std::vector<double> in_order(const std::vector<Depths>& draws,
                                    std::vector<Depth> Depths::*stack, std::size_t l,
                                    double Depth::*number) {
  std::vector<double> values;
  for (const Depths& draw : draws) values.push_back((draw.*stack)[l].*number);
  // A strict order even if a value is not a number, such as the share of a stream of zeros.
  std::ranges::sort(values, [](double a, double b) { return std::strong_order(a, b) < 0; });
  return values;
}

static double median(const std::vector<Depths>& draws, std::vector<Depth> Depths::*stack,
                     std::size_t l, double Depth::*number) {
  return in_order(draws, stack, l, number)[draws.size() / 2];
}

BlockSettings stack_settings(std::size_t C, bool relu) {
  BlockSettings settings = llama_style(C, 4, 2, relu ? 4 * C : gated_width(C, 1));
  settings.activation = relu ? Activation::relu : Activation::swiglu;
  return settings;
}

static std::vector<BlockWeights> draw_layers(const BlockSettings& settings, std::size_t L,
                                             float residual_scale, Random& random) {
  std::vector<BlockWeights> layers;
  layers.reserve(L);
  for (std::size_t l = 0; l < L; ++l)
    layers.push_back(draw_block(settings, random, residual_scale));
  return layers;
}

/// Random changes of a text, sent up through the layers.
static std::vector<Tensor<2>> draw_changes(const Tensor<2>& text, Random& random) {
  std::vector<Tensor<2>> changes;
  for (int i = 0; i < 8; ++i) changes.push_back(random.normal<2>({text.shape(0), text.shape(1)}));
  return changes;
}

static Depths all_depths(const Tensor<2>& x, const BlockSettings& settings, std::size_t L,
                         float residual_scale, Random& random) {
  const std::vector<BlockWeights> layers = draw_layers(settings, L, residual_scale, random);
  const std::vector<Tensor<2>> changes = draw_changes(x, random);
  const auto of = [&](Joined joined) { return depths(joined, x, settings, layers, changes); };
  return {of(Joined::pre_norm), of(Joined::post_norm), of(Joined::norms_only),
          of(Joined::sums_only), of(Joined::neither)};
}

static void show_changes(const std::vector<Depths>& draws, const std::vector<std::size_t>& shown) {
  print_section(fmt::format("A small change on its way up through {} layers", shown.back()));
  Table table({">layers", ">neither", ">sums only", ">norms only", ">post-norm", ">pre-norm"});
  bool too_large = false;
  for (const std::size_t l : shown) {
    if (l == 0 && shown.back() > 0) continue;  // the last norm alone
    const auto grown = [&](std::vector<Depth> Depths::*stack) {
      const double factor = median(draws, stack, l, &Depth::arrives);
      too_large = too_large || std::isnan(factor);
      return of_gradient(factor);
    };
    table.add({std::to_string(l), grown(&Depths::neither), grown(&Depths::sums),
               grown(&Depths::norms), grown(&Depths::post), grown(&Depths::pre)});
  }
  table.print();
  fmt::print("\n");
  print_paragraph(
      std::string("A small random change is added to the tokens' vectors below a stack of layers. "
                  "The table shows how many times as large the change is at the top: the median of "
                  "seven draws of the weights. Sent down, a random gradient would change by the "
                  "same factor in the mean square, though not always in the median. The stacks "
                  "with norms have one more norm at the top, as a pre-norm model does.") +
      (too_large ? " Where there is a dash, the vectors have become too large for floats." : ""));
}

/// The same after all layers.
static void show_draws(const std::vector<Depths>& draws, std::size_t L) {
  print_section(fmt::format("The change after {} layers, for seven draws of the weights", L));
  Table table({"", ">smallest", ">median", ">largest"});
  const auto add = [&](const char* name, std::vector<Depth> Depths::*stack) {
    const std::vector<double> values = in_order(draws, stack, L, &Depth::arrives);
    table.add({name, of_gradient(values.front()), of_gradient(values[values.size() / 2]),
               of_gradient(values.back())});
  };
  add("post-norm", &Depths::post);
  add("pre-norm", &Depths::pre);
  table.print();
}

static void show_sizes(const std::vector<Depths>& draws, const std::vector<std::size_t>& shown) {
  print_section(fmt::format("The stream through {} layers", shown.back()));
  Table table({">layers", ">size: pre-norm", ">post-norm", ">apart: pre-norm", ">post-norm",
               ">norms only"});
  for (const std::size_t l : shown) {
    const auto size = [&](std::vector<Depth> Depths::*stack) {
      return of_size(median(draws, stack, l, &Depth::size));
    };
    const auto apart = [&](std::vector<Depth> Depths::*stack) {
      return of_size(median(draws, stack, l, &Depth::spread));
    };
    table.add({std::to_string(l), size(&Depths::pre), size(&Depths::post), apart(&Depths::pre),
               apart(&Depths::post), apart(&Depths::norms)});
  }
  table.print();
  fmt::print("\n");
  print_paragraph(
      "Size is the root mean square of the stream after this many layers. Apart is the share of "
      "the stream that differs from token to token. If it is 0, all tokens have the same vector, "
      "and no later layer can tell them apart. Both are medians of the same draws.");
}

static void show_straight(const std::vector<Depths>& draws, const std::vector<std::size_t>& shown) {
  print_section("The part of the gradient that passes no matrix");
  Table table({">layers", ">post-norm", ">pre-norm"});
  for (const std::size_t l : shown)
    table.add({std::to_string(l), of_gradient(median(draws, &Depths::post, l, &Depth::straight)),
               of_gradient(median(draws, &Depths::pre, l, &Depth::straight))});
  table.print();
  fmt::print("\n");
  print_paragraph(
      "This part comes through the sums alone, and through the norms' divisions by the size of a "
      "token. The values are medians of the same draws.");
}

void show_depth(const Tensor<2>& x,  // [T, C]
                const BlockSettings& settings, std::size_t L, float residual_scale,
                Random& random) {
  // Products this small are done before a second thread is awake.
  const int threads = int(thread_count());
  set_threads(1);
  std::vector<Depths> draws;
  for (int draw = 0; draw < 7; ++draw)
    draws.push_back(all_depths(x, settings, L, residual_scale, random));
  std::vector<std::size_t> shown = {0};
  for (std::size_t l = 1; l < L; l *= 2) shown.push_back(l);
  if (L > 0) shown.push_back(L);
  show_changes(draws, shown);
  show_draws(draws, L);
  show_sizes(draws, shown);
  show_straight(draws, shown);
  set_threads(threads);
}

}  // namespace t2t
