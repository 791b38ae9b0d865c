// Chapter 22: a training on a grid is the training of one process.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <vector>

#include "09_language_model/cases.hpp"
#include "22_grid/tiny_grid.hpp"
#include "support/first_difference.hpp"
#include "support/refuses.hpp"

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

/// Of each rank, what ranks of the same tensor number on a grid of one data rank and one stage have
/// of its blocks: the values, and the sum of the magnitudes of the weights of its blocks.
TEST_CASE("with two tensor ranks, any number of data ranks and stages gives the same bits") {
  const Config config = gpt2_config();
  TrainingOptions options = options_of(5, 0.1f);
  options.clip = 0.05;
  const OnRanks two = trained(with_two[0], config, options);
  REQUIRE(two.error == "");
  const Floats reports(two.results[0].begin(), two.results[0].begin() + values);
  // What shard t has on one stage, cut into stages.
  const auto own = [&](const GridShape& shape, const GridPlace& place) {
    const Shard shard = {place.tensor, 2};
    const Config of_shard = trained_config_of(config, shard);
    ModelWeights all =
        stage_weights(trained_shard_of(weights_of(config), config, shard), of_shard, {0, 1});
    auto from = two.results[place.tensor].begin() + values;
    for (const ListedTensor& tensor : stage_tensors(all, of_shard, {0, 1}))
      if (!piece_of(tensor.info, config, shard).zeros) {
        std::copy_n(from, tensor.numbers.size(), tensor.numbers.begin());
        from += std::ptrdiff_t(tensor.numbers.size());
      }
    const StagePlace stage = {place.stage, shape.stages};
    ModelWeights cut = stage_weights(all, of_shard, stage);
    Floats found = reports;
    for (const ListedTensor& tensor : stage_tensors(cut, of_shard, stage))
      if (!piece_of(tensor.info, config, shard).zeros) append(found, {tensor});
    return found;
  };
  for (const GridShape& shape : with_two) {
    const OnRanks got = trained(shape, config, options);
    INFO(shape.data, " x ", shape.stages, " x ", shape.tensor);
    REQUIRE(got.error == "");
    for (std::size_t r = 0; r < shape.ranks(); ++r) {
      const Floats want = own(shape, place_of(shape, r));
      CAPTURE(r);
      CHECK((got.results[r] == want ? "" : first_difference(got.results[r], want)) == "");
    }
  }
}

}  // namespace t2t::grid_training_tests
