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

/// The measures of five stacks with the same weights, after 0, 1, 2 … L layers.
struct Stacks {
  std::vector<StackMeasures> pre, post, norms, residuals, neither;
};

/// One measure of one stack after l layers, for each draw of the weights, in ascending order.
static std::vector<double> in_order(const std::vector<Stacks>& draws,
                                    std::vector<StackMeasures> Stacks::*stack, std::size_t l,
                                    double StackMeasures::*number) {
  std::vector<double> values;
  for (const Stacks& draw : draws) values.push_back((draw.*stack)[l].*number);
  // A strict order even if a value is not a number, such as the share of a stream of zeros.
  std::ranges::sort(values, [](double a, double b) { return std::strong_order(a, b) < 0; });
  return values;
}

static double median(const std::vector<Stacks>& draws, std::vector<StackMeasures> Stacks::*stack,
                     std::size_t l, double StackMeasures::*number) {
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

/// Random changes to the input, sent up through the layers.
static std::vector<Tensor<2>> draw_changes(const Tensor<2>& input, Random& random) {
  std::vector<Tensor<2>> changes;
  for (int i = 0; i < 8; ++i) changes.push_back(random.normal<2>({input.shape(0), input.shape(1)}));
  return changes;
}

static Stacks measure_stacks(const Tensor<2>& x, const BlockSettings& settings, std::size_t L,
                             float residual_scale, Random& random) {
  const std::vector<BlockWeights> layers = draw_layers(settings, L, residual_scale, random);
  const std::vector<Tensor<2>> changes = draw_changes(x, random);
  const auto of = [&](StackVariant variant) {
    return measure_stack(variant, x, settings, layers, changes);
  };
  return {of(StackVariant::pre_norm), of(StackVariant::post_norm), of(StackVariant::norms_only),
          of(StackVariant::residuals_only), of(StackVariant::neither)};
}

static void show_changes(const std::vector<Stacks>& draws, const std::vector<std::size_t>& shown) {
  print_section(fmt::format("A small change on its way up through {} layers", shown.back()));
  Table table({">layers", ">neither", ">residuals only", ">norms only", ">post-norm", ">pre-norm"});
  bool too_large = false;
  for (const std::size_t l : shown) {
    if (l == 0 && shown.back() > 0) continue;  // the last norm alone
    const auto grown = [&](std::vector<StackMeasures> Stacks::*stack) {
      const double factor = median(draws, stack, l, &StackMeasures::gradient);
      too_large = too_large || std::isnan(factor);
      return of_gradient(factor);
    };
    table.add({std::to_string(l), grown(&Stacks::neither), grown(&Stacks::residuals),
               grown(&Stacks::norms), grown(&Stacks::post), grown(&Stacks::pre)});
  }
  table.print();
  fmt::print("\n");
  print_paragraph(
      std::string("A small random change is added to the tokens' vectors below a stack of layers. "
                  "The table shows how many times as large the change is at the top: the median of "
                  "seven random initializations. A random gradient that flows from the top to the "
                  "bottom changes by the same factor in root mean square, since both follow from "
                  "the squares of the same derivatives; its median can differ. The stacks with "
                  "norms have one more norm at the top, as a pre-norm model does.") +
      (too_large ? " Where there is a dash, the vectors have become too large for floats." : ""));
}

/// The same after all layers.
static void show_draws(const std::vector<Stacks>& draws, std::size_t L) {
  print_section(fmt::format("The change after {} layers, for seven random initializations", L));
  Table table({"", ">smallest", ">median", ">largest"});
  const auto add = [&](const char* name, std::vector<StackMeasures> Stacks::*stack) {
    const std::vector<double> values = in_order(draws, stack, L, &StackMeasures::gradient);
    table.add({name, of_gradient(values.front()), of_gradient(values[values.size() / 2]),
               of_gradient(values.back())});
  };
  add("post-norm", &Stacks::post);
  add("pre-norm", &Stacks::pre);
  table.print();
}

static void show_sizes(const std::vector<Stacks>& draws, const std::vector<std::size_t>& shown) {
  print_section(fmt::format("The stream through {} layers", shown.back()));
  Table table({">layers", ">rms: pre-norm", ">post-norm", ">spread: pre-norm", ">post-norm",
               ">norms only"});
  for (const std::size_t l : shown) {
    const auto size = [&](std::vector<StackMeasures> Stacks::*stack) {
      return of_size(median(draws, stack, l, &StackMeasures::size));
    };
    const auto spread = [&](std::vector<StackMeasures> Stacks::*stack) {
      return of_size(median(draws, stack, l, &StackMeasures::spread));
    };
    table.add({std::to_string(l), size(&Stacks::pre), size(&Stacks::post), spread(&Stacks::pre),
               spread(&Stacks::post), spread(&Stacks::norms)});
  }
  table.print();
  fmt::print("\n");
  print_paragraph(
      "Rms is the root mean square of the stream after this many layers. Spread is the share of "
      "the stream that differs from token to token. If it is 0, all tokens have the same vector, "
      "and no later layer can tell them apart. Both are medians over the same seven "
      "initializations.");
}

static void show_direct_gradient(const std::vector<Stacks>& draws,
                                 const std::vector<std::size_t>& shown) {
  print_section("The part of the gradient that goes through no matrix");
  Table table({">layers", ">post-norm", ">pre-norm"});
  for (const std::size_t l : shown)
    table.add({std::to_string(l),
               of_gradient(median(draws, &Stacks::post, l, &StackMeasures::direct_gradient)),
               of_gradient(median(draws, &Stacks::pre, l, &StackMeasures::direct_gradient))});
  table.print();
  fmt::print("\n");
  print_paragraph(
      "This part comes through the residual connections alone, and through the norms' divisions by "
      "the rms of a token's vector. The values are medians over the same seven initializations.");
}

void show_depth(const Tensor<2>& x,  // [T, C]
                const BlockSettings& settings, std::size_t L, float residual_scale,
                Random& random) {
  // Products this small are done before a second thread is awake.
  const int threads = int(thread_count());
  set_threads(1);
  std::vector<Stacks> draws;
  for (int draw = 0; draw < 7; ++draw)
    draws.push_back(measure_stacks(x, settings, L, residual_scale, random));
  std::vector<std::size_t> shown = {0};
  for (std::size_t l = 1; l < L; l *= 2) shown.push_back(l);
  if (L > 0) shown.push_back(L);
  show_changes(draws, shown);
  show_draws(draws, L);
  show_sizes(draws, shown);
  show_direct_gradient(draws, shown);
  set_threads(threads);
}

}  // namespace t2t
