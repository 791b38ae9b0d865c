#include "24_delta_rule/shows/show_memory.hpp"

#include <fmt/format.h>

#include <string>

#include "24_delta_rule/delta_costs.hpp"
#include "24_delta_rule/memory/recall.hpp"
#include "program/print.hpp"

namespace t2t {

static std::string share_of(Memory memory, const RecallTask& task, std::size_t seed) {
  return fmt::format("{:.2f}", recall_share(memory, task, seed));
}

static void add_memories(Table& table, const std::vector<RecallTask>& tasks, std::size_t seed) {
  for (const auto& [name, memory] : {std::pair{"linear", Memory::linear},
                                     {"delta, β = 1", Memory::delta},
                                     {"softmax", Memory::softmax}}) {
    std::vector<std::string> cells = {name};
    for (const RecallTask& task : tasks) cells.push_back(share_of(memory, task, seed));
    table.add(cells);
  }
  table.print();
  fmt::print("\n");
}

void show_recall(std::size_t seed) {
  print_section("Keys written once: the share of values that are found again, D = 32");
  Table table({"keys", ">8", ">16", ">32", ">64", ">128"});
  add_memories(table, {{8}, {16}, {32}, {64}, {128}}, seed);
  print_paragraph(
      "Random keys of length 1 and random values, 40 draws of each; softmax multiplies products by "
      "16. A value is found if, of all that were written, it is the nearest by angle to what is "
      "read at its key.");
}

void show_rewritten(std::size_t seed) {
  print_section(
      "Eight keys, each written several times with another value: is the last one found?");
  Table table({"times", ">1", ">2", ">4", ">16"});
  add_memories(table, {{8, 1}, {8, 2}, {8, 4}, {8, 16}}, seed);
  print_paragraph(
      "Softmax cannot tell which of several equal keys is the newest. A model adds positions for "
      "that.");
}

void show_state_bytes() {
  print_section("Bytes of one sequence: 48 layers with the sizes of Qwen3-Next");
  const HybridSizes sizes;
  const double mebibyte = 1 << 20;
  Table table({"tokens", ">all attend", ">one of four attends", ">none attends"});
  for (const std::size_t S : {1024, 8192, 65536, 262144}) {
    std::vector<std::string> cells = {with_commas(S)};
    for (const std::size_t every : {1, 4, 0})
      cells.push_back(
          fmt::format("{:.1f} MiB",
                      double(state_bytes(sizes, every) + cache_bytes(sizes, every, S)) / mebibyte));
    table.add(cells);
  }
  table.print();
  fmt::print("\n");
  print_paragraph(fmt::format(
      "Caches at 2 bytes per element, states in floats. One layer's state of {:.0f} MiB, without "
      "the convolution's rows, weighs as much as {} tokens of one attention layer's cache.",
      double(sizes.H * sizes.D * sizes.Dv * sizeof(float)) / mebibyte,
      with_commas(sizes.H * sizes.D * sizes.Dv * sizeof(float) /
                  (2 * sizes.G * sizes.attention_D * 2))));
}

void show_delta_operations() {
  print_section("Operations for each token and head: D = Dv = 64");
  Table table({"form", ">operations"});
  table.add({"step by step", with_commas(step_operations(64, 64))});
  for (const std::size_t c : {16, 32, 64})
    table.add({fmt::format("chunks of {}", c), with_commas(chunk_operations(64, 64, c))});
  table.print();
  fmt::print("\n");
  print_paragraph(
      "Chunks compute more, but as matrix products, and they read and write the state once per "
      "chunk instead of once per token.");
}

}  // namespace t2t
