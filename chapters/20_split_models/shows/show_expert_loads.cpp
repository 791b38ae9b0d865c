#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <vector>

#include "19_ranks/collectives/values.hpp"
#include "19_ranks/link/system_clock.hpp"
#include "19_ranks/shows/ranks_text.hpp"
#include "20_split_models/expert_parallel/choice_exchange.hpp"
#include "20_split_models/expert_parallel/expert_capacity.hpp"
#include "20_split_models/expert_parallel/expert_ranges.hpp"
#include "20_split_models/expert_parallel/run_experts.hpp"
#include "20_split_models/shows/show_experts.hpp"
#include "20_split_models/shows/shown_layer.hpp"
#include "program/print.hpp"
#include "random.hpp"

namespace t2t {

static constexpr std::size_t measured_runs = 31;

/// The choices of all ranks' tokens under loads of i^-exponent, for experts that are renumbered:
/// expert order[i] becomes i. The tokens come in a random order.
static Routed drawn_choices(std::size_t tokens, double exponent,
                            const std::vector<std::size_t>& order, std::uint64_t seed) {
  constexpr std::size_t E = ShownLayer::E, k = ShownLayer::k;
  std::vector<double> share(E);
  for (std::size_t e = 0; e < E; ++e) share[e] = std::pow(double(e + 1), -exponent);
  const double all = std::accumulate(share.begin(), share.end(), 0.0);
  std::vector<std::size_t> number(E), choices, token(tokens);
  for (std::size_t i = 0; i < E; ++i) number[order[i]] = i;
  double up_to = 0;
  for (std::size_t e = 0; e < E; ++e) {
    up_to += share[e] / all * double(k * tokens);
    while (choices.size() < std::size_t(std::lround(up_to))) choices.push_back(number[e]);
  }
  std::iota(token.begin(), token.end(), std::size_t(0));
  Random random(seed);
  for (std::size_t t = tokens; t > 1; --t)
    std::swap(token[t - 1], token[std::size_t(random.next_uniform() * double(t))]);
  Routed routed = {xt::zeros<float>({tokens, E}), xt::zeros<float>({tokens, E}),
                   std::vector<std::size_t>(k * tokens), xt::ones<float>({tokens, k})};
  // No load is above 1/k: a token's choices, `tokens` apart in the list, differ.
  for (std::size_t t = 0; t < tokens; ++t)
    for (std::size_t i = 0; i < k; ++i) routed.experts[token[t] * k + i] = choices[i * tokens + t];
  return routed;
}

/// This rank's part of all ranks' choices.
static Routed own_choices(const Communicator& world, const Routed& all) {
  constexpr std::size_t E = ShownLayer::E, k = ShownLayer::k, T = ShownLayer::T;
  const Tensor<2> none = xt::zeros<float>({T, E});
  const auto begin = all.experts.begin() + std::ptrdiff_t(world.rank * T * k);
  return {none, none, {begin, begin + std::ptrdiff_t(T * k)}, xt::ones<float>({T, k})};
}

/// Seconds that this rank's processor spends on its experts: the fastest of several runs, since
/// what other programs do can only make them longer. The ranks run one after the other.
static double expert_seconds(const Communicator& world, const Routed& own, std::uint64_t seed) {
  const ShownLayer layer = draw_layer(own_experts(ShownLayer::E, world.size, world.rank), seed);
  const ChoiceExchange exchange = exchange_counts(world, own);
  Random random(seed);
  const Tensor<2> rows = random.normal<2>({exchange.received(), ShownLayer::C});
  const auto now = [] { return seconds_on(CLOCK_PROCESS_CPUTIME_ID); };
  const std::size_t times = std::getenv("T2T_BRIEF") != nullptr ? 1 : measured_runs;
  double fastest = std::numeric_limits<double>::infinity();
  for (std::size_t r = 0; r < world.size; ++r) {
    wait_for_all(world);
    for (std::size_t i = 0; r == world.rank && i <= times; ++i) {  // the first is a warm-up
      const double start = now();
      run_own_experts(layer.experts, Activation::swiglu, exchange.experts, rows);
      if (i > 0) fastest = std::min(fastest, now() - start);
    }
  }
  return fastest;
}

/// One load with one order of experts.
struct UnevenRun {
  double rows, seconds;    // of the fullest rank, over the mean
  double dropped, by_own;  // shares of all choices, at a slack of 1.25
};

static UnevenRun run_uneven(const Communicator& world, double exponent,
                            const std::vector<std::size_t>& order, std::uint64_t seed) {
  const Routed all = drawn_choices(world.size * ShownLayer::T, exponent, order, seed);
  std::vector<float> loads(ShownLayer::E);
  for (const std::size_t e : all.experts) ++loads[e];
  const auto dropped = [&](CapacityOf of) {
    Routed own = own_choices(world, all);
    const double here = double(limit_choices(world, {1.25, of}, own));
    return sum_of_values(world, {here})[0] / double(all.experts.size());
  };
  const std::vector<double> seconds =
      value_of_each(world, expert_seconds(world, own_choices(world, all), seed));
  const double mean = std::accumulate(seconds.begin(), seconds.end(), 0.0) / double(world.size);
  return {fullest_over_mean(loads, world.size), std::ranges::max(seconds) / mean,
          dropped(CapacityOf::all_ranks), dropped(CapacityOf::own_tokens)};
}

Tensor<2> show_expert_loads(const Communicator& world, std::uint64_t seed) {
  constexpr std::size_t E = ShownLayer::E;
  constexpr std::array<std::pair<double, const char*>, 3> loads = {
      {{0, "even"}, {0.5, "1/√i"}, {1, "1/i"}}};
  std::vector<std::size_t> in_order(E);
  std::iota(in_order.begin(), in_order.end(), std::size_t(0));
  Table counted({"load of expert i", ">neighbours", ">dealt out", ">dropped", ">by own tokens"});
  Table timed({"load of expert i", ">neighbours: rows", ">time", ">dealt out: rows", ">time"});
  Tensor<2> rows = empty(loads.size(), std::size_t(2));
  for (std::size_t i = 0; i < loads.size(); ++i) {
    std::vector<float> zipf;
    for (std::size_t e = 0; e < E; ++e)
      zipf.push_back(float(std::pow(double(e + 1), -loads[i].first)));
    const UnevenRun near = run_uneven(world, loads[i].first, in_order, seed);
    const UnevenRun dealt = run_uneven(world, loads[i].first, dealt_out(zipf, world.size), seed);
    rows(i, 0) = float(near.rows), rows(i, 1) = float(dealt.rows);
    const auto text = [](double x) { return fmt::format("{:.2f}", x); };
    const auto percent = [](double x) { return fmt::format("{:.1f} %", 100 * x); };
    counted.add({loads[i].second, text(near.rows), text(dealt.rows), percent(near.dropped),
                 percent(near.by_own)});
    timed.add({loads[i].second, text(near.rows), text(near.seconds), text(dealt.rows),
               text(dealt.seconds)});
  }
  if (world.rank != 0) return rows;
  print_section(fmt::format("The fullest of {}", ranks_text(world.size)));
  counted.print();
  fmt::print("\n");
  print_paragraph(
      "The fullest rank's rows, as a multiple of the mean: with neighbouring experts on a rank, "
      "and with experts dealt out by load. Dropped: the share of choices above a capacity of 1.25 "
      "times the mean, counted over all ranks, and by each rank's own tokens.");
  print_section("How long the fullest rank computes");
  timed.print();
  fmt::print("\n");
  print_paragraph(fmt::format(
      "Processor time of the experts' products, of each rank the fastest of {} runs: the largest, "
      "as a multiple of the ranks' mean.",
      measured_runs));
  return rows;
}

}  // namespace t2t
