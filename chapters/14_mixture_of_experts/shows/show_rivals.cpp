#include "14_mixture_of_experts/shows/show_rivals.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "09_language_model/accounts/accounts.hpp"
#include "14_mixture_of_experts/model/mixture_counts.hpp"
#include "14_mixture_of_experts/shows/train_side.hpp"
#include "program/print.hpp"

namespace t2t {

/// All have about as many active parameters, except for the large dense one and those with k = 1.
static std::vector<MixtureSide> rivals() {
  return {{.name = "dense, as many active", .experts = 0, .F = 176},
          {.name = "dense, as many active, 4/3 of the steps",
           .experts = 0,
           .F = 176,
           .more_steps = 4.0 / 3},
          {.name = "dense, as many in all", .experts = 0, .F = 704},
          {.name = "mixture, no balance"},
          {.name = "mixture, Switch's loss 0.01", .balance = {.switch_loss = 0.01f}},
          {.name = "mixture, Switch's loss 0.1", .balance = {.switch_loss = 0.1f}},
          {.name = "mixture, a bias", .balance = {.bias_rate = 0.001f}},
          {.name = "mixture, capacity 1.25, Switch's loss 0.01",
           .balance = {.switch_loss = 0.01f, .slack = 1.25}},
          {.name = "finer: 16 experts of half the width, k = 4, Switch's loss 0.01",
           .balance = {.switch_loss = 0.01f},
           .experts = 16,
           .k = 4,
           .F = 44},
          {.name = "k = 1 and a shared network, Switch's loss 0.01",
           .balance = {.switch_loss = 0.01f},
           .experts = 7,
           .k = 1,
           .normalized = false,
           .shared = 88},
          {.name = "k = 1, p as weight, Switch's loss 0.01",
           .balance = {.switch_loss = 0.01f},
           .k = 1,
           .normalized = false},
          {.name = "k = 1, weight normalized to 1", .balance = {.switch_loss = 0.01f}, .k = 1}};
}

/// A summary of several seeds.
struct Summary {
  double mean = 0, least = 0, most = 0, dropped = 0, largest_load = 0, ms_a_step = 0;
};
static Summary summary_of(const std::vector<MixtureRun>& runs) {
  Summary all{.least = runs[0].held_out, .most = runs[0].held_out};
  for (const MixtureRun& run : runs) {
    const double share = 1 / double(runs.size());
    all.mean += share * run.held_out, all.dropped += share * run.dropped;
    all.ms_a_step += share * 1e3 * run.seconds_a_step;
    all.least = std::min(all.least, run.held_out), all.most = std::max(all.most, run.held_out);
    all.largest_load = std::max(all.largest_load, double(xt::amax(run.loads)()));
  }
  return all;
}

int show_rivals(const std::string& text, std::size_t steps, std::size_t seeds) {
  const std::size_t L = 4;
  const SplitText split = split_by_passage(text);
  print_section("Mixtures and dense models on the same tokens");
  print_paragraph(fmt::format("{} steps of {} windows of {} bytes, {} layers and {} seeds.", steps,
                              windows_of_side, bytes_of_window, L, seeds));
  fmt::print("\n");
  Table table({"model", ">parameters", ">active", ">held-out loss", ">least", ">most", ">dropped",
               ">largest load", ">ms per step"});
  for (const MixtureSide& side : rivals()) {
    std::vector<MixtureRun> runs;
    for (std::uint64_t seed = 1; seed <= seeds; ++seed)
      runs.push_back(train_side(side, split, L, steps, seed));
    const Summary all = summary_of(runs);
    const Config config = config_of(side, L);
    const auto percent = [&](double share) {
      return side.is_dense() ? "" : fmt::format("{:.1f} %", 100 * share);
    };
    table.add({side.name, with_commas(total(count_parameters(config))),
               with_commas(active_parameters(config)), fmt::format("{:.3f}", all.mean),
               fmt::format("{:.3f}", all.least), fmt::format("{:.3f}", all.most),
               percent(all.dropped), percent(all.largest_load),
               fmt::format("{:.1f}", all.ms_a_step)});
  }
  table.print();
  return 0;
}

}  // namespace t2t
