// Chapter 22: a training on a grid is the training of one process.
#include <doctest/doctest.h>

#include <vector>

#include "22_grid/tiny_grid.hpp"

namespace t2t::grid_training_tests {

using namespace tiny_grid;

/// Grids without tensor parallelism: no sum's order depends on them.
static const std::vector<GridShape> without_tensor = {{1, 1, 1}, {2, 1, 1}, {5, 1, 1},
                                                      {1, 3, 1}, {3, 2, 1}, {2, 3, 1}};
/// Those with two tensor ranks.
static const std::vector<GridShape> with_two = {{1, 1, 2}, {3, 1, 2}, {1, 3, 2}, {2, 2, 2}};

/// The losses of chapter 19's data parallel trainer on one rank, which adds in fixed pairs, and its
/// model after the steps.
static std::pair<Floats, ModelWeights> trained_alone(const Config& config,
                                                     const TrainingOptions& options) {
  const Communicator self = {MPI_COMM_SELF, 0, 1};
  const std::vector<int> ids = tiny_ids();
  DataTrainer trainer(self, Model(config, weights_of(config)), options, ids, SumOrder::pairs);
  Floats losses;
  for (std::size_t n = 0; n < few_steps; ++n) append_exactly(losses, trainer.step().loss);
  return {losses, trainer.model().weights()};
}

TEST_CASE("without tensor ranks, losses and weights have the bits of one rank of chapter 19") {
  Config untied_gpt2 = gpt2_config();
  untied_gpt2.tied = false;
  for (const Config& config : {llama_config(false), untied_gpt2}) {
    TrainingOptions options = options_of(6, 0.1f);
    options.clip = 0;  // chapter 13's norm is a sum in another order
    const auto [losses, weights] = trained_alone(config, options);
    for (const GridShape& shape : without_tensor) {
      const OnRanks got = trained(shape, config, options, 0, few_steps, false);
      INFO(shape.data, " x ", shape.stages, " x ", shape.tensor);
      CHECK(first_wrong_rank(got, losses, weights, config, shape) == "");
    }
  }
}

constexpr std::size_t values = 2 * 3 * few_steps;  // losses and norms

TEST_CASE("with a tied table, clipping and dropout, all numbers have the same bits") {
  for (const Config& config : {grouped_config(), gpt2_config()}) {
    TrainingOptions options = options_of(5, 0.1f);
    options.clip = 0.05;  // below every step's norm
    const OnRanks alone = trained({1, 1, 1}, config, options);
    REQUIRE(alone.error == "");
    const Floats reports(alone.results[0].begin(), alone.results[0].begin() + values);
    const ModelWeights weights = weights_in(alone.results[0], values, config);
    for (const GridShape& shape : without_tensor) {
      INFO(shape.data, " x ", shape.stages, " x ", shape.tensor);
      CHECK(first_wrong_rank(trained(shape, config, options), reports, weights, config, shape) ==
            "");
    }
  }
}

TEST_CASE("with two tensor ranks, any number of data ranks and stages gives the same bits") {
  const Config config = gpt2_config();
  TrainingOptions options = options_of(5, 0.1f);
  options.clip = 0.05;
  const OnRanks two = trained(with_two[0], config, options);
  REQUIRE(two.error == "");
  const Floats want = joined(two, values);
  for (const GridShape& shape : with_two) {
    INFO(shape.data, " x ", shape.stages, " x ", shape.tensor);
    CHECK(first_unlike(trained(shape, config, options), shape, want, values, config, 2) == "");
  }
}

}  // namespace t2t::grid_training_tests
