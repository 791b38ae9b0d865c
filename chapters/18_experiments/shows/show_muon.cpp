#include "18_experiments/shows/show_muon.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "01_embedding/embedding.hpp"
#include "13_training/text/passages.hpp"
#include "18_experiments/muon/compare_optimizers.hpp"
#include "18_experiments/muon/newton_schulz.hpp"
#include "program/print.hpp"
#include "program/progress.hpp"

namespace t2t {

static void show_singular_values() {
  const NewtonSchulz ours, classical{1.875f, -1.25f, 0.375f, ours.steps};
  print_section("Singular values, step by step");
  Table table({">at first", ">1 step", ">2 steps", ">3 steps", ">4 steps", ">5 steps",
               ">15/8, -10/8, 3/8: 5 steps"});
  for (const double first : {1.0, 0.8, 0.6, 0.3, 0.1, 0.05, 0.01, 0.001}) {
    std::vector<std::string> cells = {fmt::format("{:g}", first)};
    double s = first, other = first;
    for (std::size_t n = 0; n < ours.steps; ++n) {
      s = singular_value_after(ours, s), other = singular_value_after(classical, other);
      cells.push_back(fmt::format("{:.3f}", s));
    }
    cells.push_back(fmt::format("{:.3f}", other));
    table.add(cells);
  }
  table.print();

  // The extremes over a fine grid.
  double least = 2, most = 0, most_of_small = 0;
  for (int i = 1; i <= 100'000; ++i) {
    const double first = i * 1e-5;
    double s = first;
    for (std::size_t n = 0; n < ours.steps; ++n) s = singular_value_after(ours, s);
    if (first < 0.01) most_of_small = std::max(most_of_small, s);
    if (first >= 0.01) least = std::min(least, s), most = std::max(most, s);
  }
  fmt::print("\n");
  print_paragraph(fmt::format(
      "After 5 steps, values from 0.01 to 1 lie between {:.3f} and {:.3f}. Smaller values become "
      "at most {:.3f}.",
      least, most, most_of_small));
}

static void show_matrix_by_hand() {
  print_section("A matrix by hand");
  Table table({"", ">row 0", "", ">row 1", ""});
  const auto text = [](float x) { return fmt::format("{:.4f}", x + 0.0f); };  // -0 as 0
  const auto add = [&](const char* what, const Tensor<2>& x) {
    table.add({what, text(x(0, 0)), text(x(0, 1)), text(x(1, 0)), text(x(1, 1))});
  };
  const Tensor<2> g = {{0, -3}, {4, 0}};
  add("g", g);
  add("after 1 step", newton_schulz(g, {.steps = 1}));
  add("after 5 steps", newton_schulz(g));
  table.print();
}

static std::string rates_text(const OptimizerRun& run) {
  return run.muon_rate > 0 ? fmt::format("{:g} and {:g}", run.muon_rate, run.adamw_rate)
                           : fmt::format("{:g}", run.adamw_rate);
}

static void print_sweep(const char* what, const std::vector<Trial>& sweep) {
  std::string line = what;
  for (const Trial& trial : sweep)
    line += fmt::format("  {:g}: {:.3f}", trial.rate, trial.held_out);
  print_paragraph(line);
}

static void compare(const Config& config, std::size_t steps, const SplitText& text) {
  constexpr std::size_t seeds = 3;
  const std::vector<int> train = byte_ids(text.train), held_out = byte_ids(text.held_out);
  print_section("Muon and AdamW");
  print_paragraph(fmt::format(
      "Models of {} layers with C = {} read the text's {} bytes in windows of {}, {} windows per "
      "step. Each side uses its own best rates, with {} seeds.",
      config.L, config.block.C, with_commas(train.size()), experiment_T, experiment_B, seeds));
  fmt::print("\n");
  const OptimizerComparison found = compare_optimizers(
      {config, steps, 0}, seeds, train, held_out, [](const OptimizerRun& run, double loss) {
        show_progress(fmt::format("  rate {}, seed {}: {:.3f} ", rates_text(run), run.seed, loss));
      });
  show_progress("");
  Table table({"optimizer", ">steps", ">rates", ">held-out loss", ">least", ">most"});
  for (const ComparedSide& side : found.sides) {
    const Spread spread = spread_of(side.seeds);
    table.add({side.name, std::to_string(side.run.steps), rates_text(side.run),
               fmt::format("{:.3f}", spread.mean), fmt::format("{:.3f}", spread.least),
               fmt::format("{:.3f}", spread.most)});
  }
  table.print();
  const auto [adamw, muon] = found.seconds_a_step;
  fmt::print("\n");
  print_paragraph(fmt::format(
      "A step takes {} with AdamW and {} with Muon, {:.2f} times as long (medians of steps taken "
      "in turn). Muon's rates are those of the matrices and of the other tensors.",
      duration_text(adamw), duration_text(muon), muon / adamw));
  fmt::print("\n");
  print_paragraph("The sweeps, with seed 1:");
  print_sweep("AdamW, all tensors:", found.adamw_sweep);
  print_sweep("Muon, the matrices:", found.muon_sweep);
  print_sweep("Muon, the other tensors:", found.rest_sweep);
}

/// Four times as many steps, at the rates that the sweeps of "long" found, and at half of them.
static void compare_longer(const Config& config, const SplitText& text) {
  constexpr std::size_t steps = 1200;
  const std::vector<int> train = byte_ids(text.train), held_out = byte_ids(text.held_out);
  print_section("Muon and AdamW, longer");
  Table table({"optimizer", ">steps", ">rates", ">held-out loss"});
  for (const float share : {1.0f, 0.5f}) {
    const OptimizerRun adamw{config, steps, share * 0.008f};
    const OptimizerRun muon{config, steps, share * 0.064f, share * 0.016f};
    for (const OptimizerRun& run : {adamw, muon}) {
      show_progress(fmt::format("  rate {} ", rates_text(run)));
      table.add({run.muon_rate > 0 ? "Muon" : "AdamW", std::to_string(steps), rates_text(run),
                 fmt::format("{:.3f}", held_out_loss_of(run, train, held_out))});
    }
  }
  show_progress("");
  table.print();
}

int show_muon(const std::string& what, const std::string& text) {
  const auto config = [](std::size_t C, std::size_t H, std::size_t F) {
    return Config{
        .block = llama_style(C, H, H, F), .L = 2, .V = 256, .T_max = experiment_T, .tied = true};
  };
  if (what == "values") {
    show_singular_values();
    show_matrix_by_hand();
  } else if (what == "short") {
    SplitText split = split_by_passage(text);
    split.held_out.resize(std::min<std::size_t>(split.held_out.size(), 8192));
    compare(config(16, 2, 42), 32, split);
  } else if (what == "long") {
    compare(config(64, 4, 170), 300, split_by_passage(text));
  } else if (what == "longer") {
    compare_longer(config(64, 4, 170), split_by_passage(text));
  } else {
    throw std::invalid_argument("--muon: wanted values, short, long or longer, got " + what);
  }
  return 0;
}

}  // namespace t2t
