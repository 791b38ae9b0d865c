#include "15_serving/shows/show_pages.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "15_serving/shows/toy_runner.hpp"
#include "program/print.hpp"
#include "random.hpp"

namespace t2t {

/// How many pages are in the table of one running sequence, in the tables of several, in the tree
/// alone, and free.
static std::array<std::size_t, 4> page_counts(const Engine& engine) {
  std::vector<std::size_t> tables(engine.pool().pages());  // how many contain each page
  for (const Sequence& running : engine.running())
    for (const std::size_t page : running.table) ++tables[page];
  const auto unused = std::size_t(std::ranges::count(tables, std::size_t(0)));
  const auto unshared = std::size_t(std::ranges::count(tables, std::size_t(1)));
  const std::size_t free = engine.pool().free();
  return {unshared, tables.size() - unused - unshared, unused - free, free};
}

/// What three sequences do in each step, and what the pages hold after it: a column for each step.
class Timeline {
 public:
  void add(const Engine& engine, const std::vector<Event>& events) {
    std::vector<std::string>& column = columns_.emplace_back(sequences);
    for (const Sequence& waiting : engine.waiting()) column[waiting.id] = "w";
    for (const std::size_t id : engine.plan().preempted) column[id] = "p", generating_.erase(id);
    for (const auto& [id, tokens] : engine.plan().parts)
      column[id] = generating_.contains(id) ? "g" : fmt::format("r{}", tokens);
    for (const Event& event : events) generating_.insert(event.id);
    for (const std::size_t count : page_counts(engine)) column.push_back(std::to_string(count));
  }

  void print() const {
    std::string steps;
    for (std::size_t step = 0; step < columns_.size(); ++step) steps += fmt::format("{:>4}", step);
    fmt::print("  {:<10}{}\n", "step", steps);
    for (std::size_t id = 0; id < sequences; ++id) print_row(fmt::format("sequence {}", id), id);
    fmt::print("\n  pages\n");
    std::size_t row = sequences;
    for (const char* name : {"unshared", "shared", "cached", "free"}) print_row(name, row++);
  }

 private:
  void print_row(std::string_view name, std::size_t row) const {
    std::string line = fmt::format("  {:<10}", name);
    for (const std::vector<std::string>& column : columns_)
      line += fmt::format("{:>4}", column[row]);
    fmt::print("{}\n", line.substr(0, line.find_last_not_of(' ') + 1));
  }

  static constexpr std::size_t sequences = 3;
  std::vector<std::vector<std::string>> columns_;  // of each: the sequences, then the page counts
  std::set<std::size_t> generating_;               // sequences that have a token since admission
};

void run_three_sequences(const AfterStep& after) {
  const EngineOptions options{.pages = 12, .page_size = 4, .sequences = 3, .budget = 12};
  std::vector<Arrival> arrivals;
  const auto add = [&](std::size_t step, std::vector<int> own, std::size_t most) {
    Request request{.prompt = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, .max_new_tokens = most};
    request.prompt.insert(request.prompt.end(), own.begin(), own.end());
    request.sampling.temperature = 0;
    arrivals.push_back({step, request});
  };
  add(0, {11}, 11), add(2, {12, 13, 14}, 14), add(3, std::vector<int>(15, 15), 6);
  run_arrivals(Engine(toy_runner(options, 50)), arrivals, after);
}

void show_pages() {
  print_section("Three sequences in twelve pages of four tokens");
  Timeline timeline;
  run_three_sequences([&](std::size_t, const Engine& engine, const std::vector<Event>& events) {
    timeline.add(engine, events);
  });
  timeline.print();
  fmt::print(R"(
  r11  reads 11 tokens (prefill) of its prompt, and of its answer so far if it was preempted
  g    reads its last token and generates the next (decode)
  p    is preempted: it gives all its pages back
  w    waits to be admitted

)");
  print_paragraph(
      "A step reads at most 12 tokens. The lower rows count the twelve pages after each step: "
      "unshared, in the table of one running sequence; shared by several; cached for later "
      "sequences with the same prefix; and free. When pages run out, cached pages are evicted "
      "first. Then the youngest sequence is preempted, but its full pages stay cached until others "
      "need them.");
}

/// Lengths of conversations: e to the power of a normally distributed number, as lengths of
/// sequences often are.
static std::vector<std::size_t> random_lengths(std::size_t count, std::size_t most,
                                               Random& random) {
  const Tensor<1> drawn = random.normal<1>({count}, 0.9f);
  std::vector<std::size_t> lengths;
  for (const float x : drawn)
    lengths.push_back(std::clamp(std::size_t(300 * std::exp(x)), std::size_t(16), most));
  return lengths;
}

void show_waste(const Program& program) {
  print_section("Memory for a thousand sequences of up to 2,048 tokens");
  Random random(program.seed());
  const std::size_t S = 2048;
  const std::vector<std::size_t> lengths = random_lengths(1000, S, random);
  double used = 0;
  for (const std::size_t length : lengths) used += double(length);
  Table table({"memory is divided into", ">positions reserved per sequence", ">unused",
               ">sequences in 1 GiB"});
  const double floats_a_token = 2 * 30 * 3 * 64;  // SmolLM2-135M's keys and values
  const auto add = [&](const std::string& name, double places) {
    const double per_sequence = places / double(lengths.size());
    table.add({name, fmt::format("{:.0f}", per_sequence),
               fmt::format("{:.1f} %", 100 * (1 - used / places)),
               fmt::format("{:.0f}", double(1 << 30) / (per_sequence * floats_a_token * 4))});
  };
  add("a contiguous region per sequence", double(S * lengths.size()));
  for (const std::size_t page_size : {256, 64, 16, 4}) {
    double places = 0;
    for (const std::size_t length : lengths)
      places += double((length + page_size - 1) / page_size * page_size);
    add(fmt::format("pages of {}", page_size), places);
  }
  table.print();
  fmt::print("\n");
  print_paragraph(
      fmt::format("The lengths are 300·e^x, where x is normal with a standard deviation of 0.9, "
                  "but at least 16 and at most 2,048; their mean is {:.0f}. A token's keys and "
                  "values take {:.0f} bytes, as in SmolLM2-135M.",
                  used / double(lengths.size()), floats_a_token * 4));
}

}  // namespace t2t
