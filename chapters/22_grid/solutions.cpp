// The solutions to the problems on paper of docs/22_grid.md.
#include "program/solutions.hpp"

#include <fmt/format.h>

#include "20_split_models/tensor_parallel/shards.hpp"
#include "22_grid/training/grid_costs.hpp"
#include "program/print.hpp"

namespace t2t {

static Solution place_of_a_rank() {
  const GridShape shape = {.data = 4, .stages = 4, .tensor = 8};
  const GridPlace place = place_of(shape, 77);
  return {"the place of rank 77",
          fmt::format("77 = (2·4 + 1)·8 + 5: stage {}, data {}, tensor {}. Its tensor ranks are 72 "
                      "to 79, which are one machine if a machine has eight ranks. Its data ranks "
                      "are 69, 77, 85 and 93, and the ranks of its line of stages are 13, 45, 77 "
                      "and 109.",
                      place.stage, place.data, place.tensor)};
}

/// An inner stage of LLaMA-2-7B, with messages of one rank per step.
static Solution bytes_of_directions() {
  const Config whole = preset("llama2-7b");
  TrainingOptions options{.B = 1, .T = 4096, .parts = 32};
  const GridSent sent = grid_step_cost(whole, {4, 4, 8}, {1, 1, 3}, options);
  const auto gb = [](const Sent& one) { return double(one.bytes) / 1e9; };
  return {"bytes of three directions",
          fmt::format("Tensor: 8 micro-batches, 8 blocks, 4 sums of 4,096·4,096 floats, of which a "
                      "ring sends 2·7/8: {:.1f} GB. Stages: 8 micro-batches, two messages of "
                      "4,096·4,096 floats: {:.2f} GB. Data: {} floats of its shard, which the "
                      "second of four data ranks sends once, up the tree: {:.2f} GB.",
                      gb(sent.tensor), gb(sent.stages),
                      with_commas(grid_memory(whole, {4, 4, 8}, {1, 1, 3}, options).held.weights /
                                  sizeof(float)),
                      gb(sent.data))};
}

static Solution shards_of_eight() {
  return {
      "eight shards on three ranks",
      "The ranks have shards 0 and 1, 2 to 4, and 5 to 7, and add 0 + 1, 2 + 3 and 6 + 7 without "
      "messages. Rank 2 sends 5 and 6 + 7 to rank 1, which adds 4 + 5 and then (4 + 5) + (6 + 7). "
      "Rank 1 sends 2 + 3 and this sum to rank 0, which adds (0 + 1) + (2 + 3) and then both "
      "halves. These are four messages."};
}

static Solution who_adds_gradients() {
  const GridShape shape = {.data = 2, .stages = 2, .tensor = 1, .experts = 4};
  const GridPlace place = place_of(shape, 13);
  const auto at = [&](std::size_t data, std::size_t expert) {
    return rank_at(shape, {data, place.stage, place.tensor, expert});
  };
  return {"who adds which gradients",
          fmt::format("13 = (1·2 + 1)·4 + 1: stage {}, data {}, expert rank {}. Its router's "
                      "gradient is added over the replicas, ranks {} to {}; those of its experts "
                      "over ranks {} and {}. Each of the 8 replicas has 2 of 16 micro-batches. A "
                      "row for each of them has the gradients of everything else, and a row for "
                      "each of the line's {} micro-batches has those of its experts.",
                      place.stage, place.data, place.expert, at(0, 0), at(1, 3),
                      at(0, place.expert), at(1, place.expert), 16 / shape.data)};
}

std::vector<Solution> solutions() {
  return {place_of_a_rank(), bytes_of_directions(), shards_of_eight(), who_adds_gradients()};
}

}  // namespace t2t
