#include "20_split_models/shows/show_latency.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "20_split_models/tensor_parallel/parallel_state.hpp"
#include "20_split_models/tensor_parallel/shards.hpp"
#include "memory.hpp"
#include "program/print.hpp"

namespace t2t {

static constexpr double memory_bandwidth = 50e9, link_bandwidth = 10e9;  // bytes/s

/// Seconds in which the fullest rank reads its weights, as floats, once.
static double reading_seconds(const Config& whole, std::size_t ranks) {
  std::size_t most = 0;
  for (std::size_t r = 0; r < ranks; ++r)
    most = std::max(most, shard_size(whole, {r, ranks}).parameters);
  return double(most * sizeof(float)) / memory_bandwidth;
}

static void add_row(Table& table, const std::string& name, const Config& whole, std::size_t ranks) {
  const double alone = reading_seconds(whole, 1), now = reading_seconds(whole, ranks);
  const Sent sent = pass_cost(whole, 1, 1, ranks, 0).together();
  const double in_bytes = double(sent.bytes) / link_bandwidth;
  const double latency = (alone - now - in_bytes) / double(sent.messages);
  table.add({name, fmt::format("{}", ranks), duration_text(now), with_commas(sent.messages),
             with_commas(sent.bytes), ranks > 1 ? duration_text(latency) : ""});
}

void show_latency() {
  print_section("Up to which latency several ranks are faster than one");
  Table table({"model", ">ranks", ">reads its weights in", ">messages", ">bytes", ">faster below"});
  for (const std::size_t ranks : {1, 2, 3, 4})
    add_row(table, "SmolLM2-135M", preset("smollm2-135m"), ranks);
  for (const std::size_t ranks : {1, 2, 4, 8})
    add_row(table, "LLaMA-2-7B", preset("llama2-7b"), ranks);
  table.print();
  fmt::print("\n");
  print_paragraph(fmt::format(
      "One token, weights as floats, read at {}/s by the fullest rank; links carry {}/s. Messages "
      "follow one another, and nothing else happens meanwhile.",
      bytes_text(memory_bandwidth), bytes_text(link_bandwidth)));
}

}  // namespace t2t
