#include "18_experiments/shows/show_experiment.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <stdexcept>
#include <vector>

#include "01_embedding/embedding.hpp"
#include "13_training/text/passages.hpp"
#include "18_experiments/try_variant.hpp"
#include "program/print.hpp"
#include "program/progress.hpp"

namespace t2t {

static std::string rate_text(const Trial& trial) {
  return fmt::format("{:g}: {:.3f}", trial.rate, trial.held_out);
}

/// The seeds' losses on a line between two losses: "   ·─•──·  ".
static std::string drawing_of(const Spread& spread, double from, double to) {
  constexpr int width = 31;
  std::vector<std::string> line(width, " ");
  const auto place = [&](double loss) {
    return std::clamp(int(std::lround((loss - from) / (to - from) * (width - 1))), 0, width - 1);
  };
  if (!std::isfinite(spread.most)) return "not finite";
  for (int i = place(spread.least); i <= place(spread.most); ++i) line[std::size_t(i)] = "─";
  line[std::size_t(place(spread.mean))] = "●";
  std::string text;
  for (const std::string& mark : line) text += mark;
  return text;
}

static void show_outcomes(const Experiment& experiment, const std::vector<Outcome>& outcomes) {
  double from = 1e9, to = 0;
  for (const Outcome& outcome : outcomes) {
    const Spread spread = spread_of(outcome.seeds);
    from = std::min(from, spread.least);
    if (std::isfinite(spread.most)) to = std::max(to, spread.most);
  }
  Table table(
      {"model", ">parameters", ">best rate", ">held-out loss", ">least", ">most", ">ms per step"});
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    const Spread spread = spread_of(outcomes[i].seeds);
    table.add({experiment.variants[i].name, with_commas(parameter_count(experiment.variants[i])),
               fmt::format("{:g}", outcomes[i].seeds[0].rate), fmt::format("{:.3f}", spread.mean),
               fmt::format("{:.3f}", spread.least), fmt::format("{:.3f}", spread.most),
               fmt::format("{:.1f}", 1e3 * outcomes[i].seconds_a_step)});
  }
  table.print();
  fmt::print("\n  {:.3f} {:>31.3f}\n", from, to);
  for (std::size_t i = 0; i < outcomes.size(); ++i)
    fmt::print("  {}  {}\n", drawing_of(spread_of(outcomes[i].seeds), from, to + 1e-9),
               experiment.variants[i].name);
  fmt::print("\n  The sweep of learning rates, with seed 1:\n");
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    fmt::print("  {}:", experiment.variants[i].name);
    for (const Trial& trial : outcomes[i].sweep) fmt::print("  {}", rate_text(trial));
    fmt::print("\n");
  }
}

static void show_positions(const Experiment& experiment, const std::vector<Outcome>& outcomes) {
  std::vector<std::string> header = {"perplexity per byte at positions"};
  for (std::size_t q = 0; q < 4; ++q)
    header.push_back(fmt::format(">{} to {}", q * experiment_T, (q + 1) * experiment_T - 1));
  Table table(header);
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    std::vector<std::string> cells = {experiment.variants[i].name};
    for (const double p : outcomes[i].perplexity_by_position)
      cells.push_back(fmt::format("{:.2f}", p));
    table.add(cells);
  }
  fmt::print("\n");
  table.print();
}

static void show_dead_units(const Experiment& experiment, const std::vector<Outcome>& outcomes) {
  Table table({"model", ">hidden units", ">0 for every held-out byte, seed by seed"});
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    const Config& config = experiment.variants[i].config;
    std::string counts;
    for (const Trial& trial : outcomes[i].seeds)
      counts += (counts.empty() ? "" : ", ") + with_commas(trial.dead_units);
    table.add({experiment.variants[i].name, with_commas(config.L * config.block.F), counts});
  }
  fmt::print("\n");
  table.print();
}

static std::vector<Outcome> show_experiment(const Experiment& experiment, const SplitText& text,
                                            std::size_t seeds) {
  const std::vector<int> train = byte_ids(text.train), held_out = byte_ids(text.held_out);
  print_section(fmt::format("{}: {}", experiment.name, experiment.question));
  print_paragraph(fmt::format(
      "{} steps of {} windows of {} bytes from a text of {} bytes, with {} seeds at the best of "
      "several learning rates.",
      experiment.steps, experiment_B, experiment_T,
      with_commas(std::min(train.size(), experiment.most_text)), seeds));
  fmt::print("\n");
  std::vector<Outcome> outcomes;
  for (const Variant& variant : experiment.variants)
    outcomes.push_back(
        try_variant(experiment, variant, train, held_out, seeds, [&](const Trial& trial) {
          show_progress(
              fmt::format("  {}, seed {}, rate {} ", variant.name, trial.seed, rate_text(trial)));
        }));
  show_progress("");
  show_outcomes(experiment, outcomes);
  if (experiment.by_position) show_positions(experiment, outcomes);
  if (experiment.dead_units) show_dead_units(experiment, outcomes);
  std::fflush(stdout);
  return outcomes;
}

int show_experiments(const std::string& name, const std::string& text, std::size_t seeds) {
  const SplitText split = split_by_passage(text);
  std::string names = "all";
  bool shown = false;
  for (const Experiment& experiment : experiments()) {
    names += ", " + experiment.name;
    if (name != "all" && name != experiment.name) continue;
    show_experiment(experiment, split, seeds);
    shown = true;
  }
  if (!shown)
    throw std::invalid_argument(fmt::format("--experiment: wanted {}, got {}", names, name));
  return 0;
}

void list_experiments() {
  print_section("Experiments: ./learn run 18 --experiment NAME");
  Table table({"name", ">sides", ">steps", "question"});
  for (const Experiment& experiment : experiments())
    table.add({experiment.name, fmt::format("{}", experiment.variants.size()),
               fmt::format("{}", experiment.steps), experiment.question});
  table.print();
}

Tensor<2> show_short_experiment(const std::string& text) {
  SplitText split = split_by_passage(text);
  split.held_out.resize(std::min<std::size_t>(split.held_out.size(), 8192));
  constexpr std::size_t seeds = 3;
  const std::vector<Outcome> outcomes = show_experiment(short_experiment(), split, seeds);
  fmt::print("\n");
  print_paragraph(
      "Where the lines of two sides overlap, the seed alone can make a larger difference than the "
      "choice that they differ in, so the experiment doesn't tell them apart.");
  Tensor<2> losses = empty(outcomes.size(), seeds);
  for (std::size_t i = 0; i < outcomes.size(); ++i)
    for (std::size_t n = 0; n < seeds; ++n) losses(i, n) = float(outcomes[i].seeds[n].held_out);
  return losses;
}

}  // namespace t2t
