// Chapter 22: what a rank of the grid sends and stores is the formula's.
#include <doctest/doctest.h>

#include <vector>

#include "22_grid/tiny_grid.hpp"

namespace t2t::grid_costs_tests {

using namespace tiny_grid;

static void append(Floats& to, const Sent& sent) {
  to.push_back(float(sent.messages)), to.push_back(float(sent.bytes));
}
static Floats numbers_of(const GridSent& sent, const Sent& all, const GridMemory& memory) {
  Floats found;
  for (const Sent& one : {sent.tensor, sent.stages, sent.data, sent.values, all})
    append(found, one);
  for (const std::size_t bytes :
       {memory.held.weights, memory.held.gradients, memory.held.optimizer, memory.kept})
    found.push_back(float(bytes));
  return found;
}

static std::string first_wrong_cost(const Config& config, const GridShape& shape,
                                    std::size_t shards) {
  const TrainingOptions options = options_of(5);
  const OnRanks got = on_ranks(shape.ranks(), [&](const Communicator& ranks) {
    const RankGrid grid(ranks, shape);
    const std::vector<int> ids = tiny_ids();
    GridTrainer trainer(grid, config, weights_of(config), options, ids, shards);
    const Sent before = sent();
    trainer.step();
    return numbers_of(trainer.sent_in_step(), sent() - before,
                      {trainer.held_bytes(), trainer.kept_bytes()});
  });
  return first_wrong_place(got, shape, [&](const GridPlace& place) {
    const GridSent sent = grid_step_cost(config, shape, place, options, shards);
    return numbers_of(sent, sent.together(), grid_memory(config, shape, place, options, shards));
  });
}

TEST_CASE("messages and bytes of each direction, and the memory, are the formulas'") {
  for (const Config& config : {llama_config(true), gpt2_config()})
    for (const GridShape& shape : {GridShape{1, 1, 1}, GridShape{3, 1, 1}, GridShape{1, 3, 1},
                                   GridShape{1, 1, 3}, GridShape{2, 2, 2}, GridShape{1, 2, 4}}) {
      INFO(shape.data, " x ", shape.stages, " x ", shape.tensor);
      CHECK(first_wrong_cost(config, shape, 0) == "");
      CHECK(first_wrong_cost(config, shape, 8) == "");
    }
}

TEST_CASE("by hand: two ranks in each direction") {
  // B·T·C = 2·9·24 floats in a sum. Two tensor ranks send each other half of them twice.
  const Config config = llama_config(true);
  const TrainingOptions options = options_of(4);
  const GridSent sent = grid_step_cost(config, {2, 2, 2}, {0, 0, 0}, options);
  const std::uint64_t sum = 2 * 9 * 24 * 4;
  // Two micro-batches; on the first stage 2 blocks of 3 with 4 sums each, and the embedding's.
  CHECK(sent.tensor == Sent{2 * 9 * 2, 2 * 9 * sum});
  // Two messages to the next stage, and 26 of the 53 rows of the table.
  CHECK(sent.stages == Sent{3, 2 * sum + 26 * 24 * 4});
  // The table's 26 rows; in each block the halves of w_q, w_k, w_v, w_o, 20 of 41 hidden channels
  // with three vectors of C, and two gains. The first data rank sends the sum back.
  const std::uint64_t elements = 26 * 24 + 2 * (4 * 24 * 16 + 20 * 3 * 24 + 2 * 24);
  CHECK(sent.data == Sent{1, elements * 4});
  CHECK(grid_memory(config, {2, 2, 2}, {0, 0, 0}, options).held ==
        HeldBytes{elements * 4, 3 * elements * 4, 2 * elements * 4});
}

}  // namespace t2t::grid_costs_tests
