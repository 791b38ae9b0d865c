#include "22_grid/shows/show_same_bits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "01_embedding/embedding.hpp"
#include "19_ranks/collectives/values.hpp"
#include "22_grid/same_bits/team_text.hpp"
#include "linalg.hpp"
#include "program/print.hpp"
#include "random.hpp"

namespace t2t {

/// The bytes of all ranks of a line.
static std::size_t bytes_of_line(std::size_t ranks, std::size_t shards) {
  std::size_t bytes = 0;
  for (std::size_t t = 0; t < ranks; ++t)
    bytes += grid_step_cost(grid_config(), {1, 1, ranks}, {0, 0, t}, grid_options(1, 1), shards)
                 .tensor.bytes;
  return bytes;
}

void show_bits_costs() {
  print_section(fmt::format("What sums in {} shards send", shown_shards));
  Table table({">tensor ranks", ">bytes of all, on rings", ">in shards", ">ratio"});
  for (const std::size_t ranks : {1, 2, 3, 4, 5, 8}) {
    const std::size_t rings = bytes_of_line(ranks, 0), pairs = bytes_of_line(ranks, shown_shards);
    table.add({fmt::format("{}", ranks), with_commas(rings), with_commas(pairs),
               rings == 0 ? "" : fmt::format("{:.2f}", double(pairs) / double(rings))});
  }
  table.print();
  fmt::print("\n");
  print_paragraph(fmt::format("Of a step of {} tokens, by formula; the tests count as many.",
                              shown_B * shown_T));
}

Tensor<2> show_team_text(const RankGrid& grid, std::uint64_t seed) {
  const Config config = grid_config();
  Random random(seed);
  const ModelWeights weights = draw_model(config, random);
  const std::vector<int> prompt = byte_ids("The same bits");
  constexpr std::size_t tokens = 16;
  const auto text_on = [&](const Communicator& ranks) {
    return team_text(ranks, config, weights, prompt, tokens, shown_shards);
  };
  const Communicator self = single_rank();
  const TeamText alone = text_on(self), divided = text_on(grid.tensor());
  std::size_t different = 0;
  for (std::size_t i = 0; i < alone.logits.size(); ++i)
    different += !(alone.logits.data()[i] == divided.logits.data()[i]);
  for (std::size_t n = 0; n < tokens; ++n) different += alone.ids[n] != divided.ids[n];
  const double of_all = sum_of_values(grid.world(), {double(different)})[0];
  if (grid.world().rank != 0) return divided.logits;
  print_section(fmt::format("{} tokens in {} shards", tokens, shown_shards));
  print_paragraph(fmt::format(
      "Of {} logits and tokens on lines of {} tensor ranks, {:.0f} have other bits than on 1 rank.",
      with_commas(grid.world().size * (alone.logits.size() + tokens)), grid.shape().tensor,
      of_all));
  return divided.logits;
}

void show_bits_times(const std::vector<int>& ids, std::uint64_t seed) {
  const Communicator self = single_rank();
  set_threads(1);
  print_section("What shards cost in time");
  Table table({">C", ">undivided", fmt::format(">in {} shards", shown_shards), ">ratio"});
  for (const std::size_t C : {64, 128, 256}) {
    const auto step_in = [&](std::size_t shards) {
      return run_grid(self, {}, {grid_config(C), grid_options(seed, 1), shards}, ids).processor;
    };
    const double whole = step_in(0), divided = step_in(shown_shards);
    table.add({fmt::format("{}", C), duration_text(whole), duration_text(divided),
               fmt::format("{:.2f}", divided / whole)});
  }
  table.print();
  fmt::print("\n");
  print_paragraph(fmt::format(
      "Processor time of a step of {} tokens on one rank with one thread: the least of {} steps.",
      shown_B * shown_T, shown_steps));
}

}  // namespace t2t
