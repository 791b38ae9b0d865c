#include "14_mixture_of_experts/shows/show_balance.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "14_mixture_of_experts/model/mixture_counts.hpp"
#include "14_mixture_of_experts/shows/train_side.hpp"
#include "program/print.hpp"

namespace t2t {

static void show_loads(const std::vector<MixtureSide>& sides, const std::vector<MixtureRun>& runs) {
  for (std::size_t l = 0; l < runs[0].loads.shape(0); ++l) {
    print_section(fmt::format("Load of each expert, layer {}", l));
    for (std::size_t i = 0; i < runs.size(); ++i) {
      fmt::print("  {}\n", sides[i].name);
      for (std::size_t e = 0; e < runs[i].loads.shape(1); ++e) {
        const double share = double(runs[i].loads(l, e));
        fmt::print("    {}  {} {:4.1f} %\n", e, bar(std::min(1.0, share), 50), 100 * share);
      }
    }
  }
}

static void show_kinds(const MixtureRun& run) {
  print_section("Which expert is chosen for which bytes, layer 1, with Switch's loss");
  std::vector<std::string> header = {">expert"};
  for (const char* kind : kinds_of_bytes) header.push_back(std::string(">") + kind);
  Table table(header);
  for (std::size_t e = 0; e < run.of_kinds.shape(0); ++e) {
    std::vector<std::string> cells = {std::to_string(e)};
    for (std::size_t i = 0; i < kinds_of_bytes.size(); ++i)
      cells.push_back(fmt::format("{:.0f} %", 100 * double(run.of_kinds(e, i))));
    table.add(cells);
  }
  table.print();
  fmt::print("\n");
  print_paragraph(
      "Each expert's share of the choices for each kind of byte in held-out text. Each column adds "
      "up to 100 %.");
}

/// How many experts tokens in a row use, compared with a random choice.
static void show_touched(const std::vector<MixtureSide>& sides,
                         const std::vector<MixtureRun>& runs) {
  print_section("How many different experts tokens in a row use, layer 1");
  std::vector<std::string> header = {"choice"};
  for (const std::size_t n : tokens_in_a_row) header.push_back(fmt::format(">T = {}", n));
  Table table(header);
  std::vector<std::string> by_chance = {"at random"};
  for (const std::size_t n : tokens_in_a_row)
    by_chance.push_back(fmt::format("{:.1f}", experts_touched(sides[0].experts, sides[0].k, n)));
  table.add(by_chance);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    std::vector<std::string> cells = {sides[i].name};
    for (const float touched : runs[i].touched) cells.push_back(fmt::format("{:.1f}", touched));
    table.add(cells);
  }
  table.print();
}

void show_balance(const std::string& text, std::size_t steps, std::size_t seed) {
  const std::vector<MixtureSide> sides = {{"no balance"},
                                          {"Switch's loss, factor 0.01", {.switch_loss = 0.01f}},
                                          {"a bias, step 0.001", {.bias_rate = 0.001f}}};
  const SplitText split = split_by_passage(text);
  std::vector<MixtureRun> runs;
  Table table({"balanced by", ">held-out loss", ">largest load", ">smallest load", ">ms per step"});
  for (const MixtureSide& side : sides) {
    runs.push_back(train_side(side, split, 2, steps, seed));
    const MixtureRun& run = runs.back();
    table.add({side.name, fmt::format("{:.3f}", run.held_out),
               fmt::format("{:.1f} %", 100 * double(xt::amax(run.loads)())),
               fmt::format("{:.1f} %", 100 * double(xt::amin(run.loads)())),
               fmt::format("{:.1f}", 1e3 * run.seconds_a_step)});
  }
  print_section("A mixture learns the book, with and without balance");
  print_paragraph(fmt::format(
      "2 layers of 8 experts, of which a token uses 2, learn for {} steps of {} windows of {} "
      "bytes. With an even load, each expert gets 12.5 %.",
      steps, windows_of_side, bytes_of_window));
  fmt::print("\n");
  table.print();
  show_loads(sides, runs);
  show_kinds(runs[1]);
  show_touched(sides, runs);
}

}  // namespace t2t
