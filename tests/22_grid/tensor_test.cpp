// Chapter 22: with tensor ranks, gradients and losses are one rank's within a bound; and errors on
// a grid.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "09_language_model/cases.hpp"
#include "22_grid/tiny_grid.hpp"
#include "support/refuses.hpp"

namespace t2t::grid_tensor_tests {

using namespace tiny_grid;

static const std::vector<GridShape> grids = {{1, 1, 2}, {1, 2, 2}, {1, 2, 3}, {1, 1, 8}};

/// The gradients of a step's only micro-batch on one rank, and its loss.
static std::pair<ModelWeights, double> gradients_of(const Config& config,
                                                    const TrainingOptions& options) {
  const std::vector<int> ids = tiny_ids();
  Windows windows(ids, T, options.seed);
  Batch batch = make_batch(options.B, T);
  windows.fill(batch, 0);
  ModelWeights gradients = zeros_of(config);
  Gradients passes(config, options.B, T);
  const double tokens = double(options.B * T);
  const double loss =
      passes.add(Model(config, weights_of(config)), batch, 1 / float(tokens), gradients);
  return {std::move(gradients), loss / tokens};
}

/// The largest error of a rank's gradients as a share of the bound, which is chapter 20's: a pass
/// keeps K·u of what goes through it, there and back; an element's gradient is compared with the
/// root mean square of its tensor, and may be a few times larger. That of b_k is exactly 0, and the
/// terms that cancel are w_k's.
static double gradient_error(const std::vector<ListedTensor>& got, const ModelWeights& want,
                             const Config& config, const GridShape& shape, std::size_t rank) {
  const double bound = 4 * Case{"", config, 1}.bound(1);
  double worst = 0, rms = 0, of_w_k = 0;
  auto own = got.begin();
  for_each_own(want, config, shape, place_of(shape, rank), 0, [&](const ListedTensor& tensor) {
    double squares = 0;
    for (const float x : tensor.numbers) squares += double(x) * double(x);
    rms = tensor.info.name == "b_k" ? of_w_k : std::sqrt(squares / double(tensor.numbers.size()));
    if (tensor.info.name == "w_k") of_w_k = rms;
    const ConstRow mine = (own++)->numbers;
    for (std::size_t k = 0; k < tensor.numbers.size(); ++k) {
      const double w = tensor.numbers[k], share = std::abs(double(mine[k]) - w) / bound;
      worst = std::isnan(share) ? 99 : std::max(worst, share / (rms + std::abs(w)));
    }
  });
  return worst;
}

static double norm_of(ModelWeights gradients, const Config& config) {
  double squares = 0;
  for (const ListedTensor& tensor : tensors_of(gradients, config))
    for (const float g : tensor.numbers) squares += double(g) * double(g);
  return std::sqrt(squares);
}

TEST_CASE("gradients, their norm and the loss of a step are one rank's within the bound") {
  for (const Config& config : {llama_config(true), grouped_config(), gpt2_config()}) {
    TrainingOptions options = options_of(1);
    options.clip = 0;
    const auto [gradients, want_loss] = gradients_of(config, options);
    const double want_norm = norm_of(gradients, config);
    const ModelWeights want =
        stage_weights(gradients, config, {0, 1});  // both tables of a tied one
    for (const GridShape& shape : grids) {
      INFO(shape.data, " x ", shape.stages, " x ", shape.tensor);
      const double loss_alone = want_loss, norm_alone = want_norm;
      const OnRanks got = on_ranks(shape.ranks(), [&](const Communicator& ranks) -> Floats {
        const RankGrid grid(ranks, shape);
        const std::vector<int> ids = tiny_ids();
        GridTrainer trainer(grid, config, weights_of(config), options, ids);
        const StepReport step = trainer.step();
        const double bound = Case{"", config, 1}.bound(1);
        const double of_loss = std::abs(step.loss / loss_alone - 1) / bound,
                     of_norm = std::abs(step.gradient_norm / norm_alone - 1) / (4 * bound);
        return {float(gradient_error(trainer.shards()[0]->gradients(), want, config, shape,
                                     ranks.rank)),
                float(of_loss), float(of_norm)};
      });
      REQUIRE(got.error == "");
      for (const Floats& of_rank : got.results) {
        CHECK(of_rank[0] <= 1);
        CHECK(of_rank[1] <= 1);
        CHECK(of_rank[2] <= 1);
      }
    }
  }
}

constexpr std::size_t steps = 20;

/// The losses of a run on one rank, whose weights first change by a rounding each, or not.
static std::vector<double> losses_alone(const Config& config, std::uint64_t seed) {
  const std::vector<int> ids = tiny_ids();
  ModelWeights weights = weights_of(config);
  Random random(seed);
  if (seed > 0)
    for (const ListedTensor& tensor : tensors_of(weights, config))
      for (float& w : tensor.numbers)
        w *= 1 + (random.next_uniform() < 0.5 ? 1.f : -1.f) * 0x1p-23f;
  Trainer trainer(Model(config, weights), options_of(2), ids);
  std::vector<double> losses;
  for (std::size_t n = 0; n < steps; ++n) losses.push_back(trainer.step().loss);
  return losses;
}

TEST_CASE("twenty losses stay as close to one rank's as those of weights changed by a rounding") {
  const Config config = llama_config(true);
  const std::vector<double> want = losses_alone(config, 0);
  std::vector<double> spread(steps);
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    const std::vector<double> other = losses_alone(config, seed);
    for (std::size_t n = 0; n < steps; ++n)
      spread[n] = std::max({spread[n], n > 0 ? spread[n - 1] : 0, std::abs(other[n] - want[n])});
  }
  for (const GridShape& shape : {GridShape{2, 2, 2}, GridShape{1, 2, 4}, GridShape{2, 1, 3}}) {
    const OnRanks got = on_ranks(shape.ranks(), [&](const Communicator& ranks) -> Floats {
      const RankGrid grid(ranks, shape);
      const std::vector<int> ids = tiny_ids();
      GridTrainer trainer(grid, config, weights_of(config), options_of(2), ids);
      double worst = 0, of_norms = 0;
      for (std::size_t n = 0; n < steps; ++n) {
        const StepReport step = trainer.step();
        worst = std::max(worst, std::abs(step.loss - want[n]) / (8 * spread[n]));
        of_norms += step.gradient_norm;
      }
      return {float(worst), float(of_norms)};
    });
    REQUIRE(got.error == "");
    for (const Floats& of_rank : got.results) {
      CHECK(of_rank[0] <= 1);
      CHECK(of_rank[1] == got.results[0][1]);  // the norm is one number on all ranks
    }
  }
}

TEST_CASE("a NaN on one rank is an error on all, with the same words, and no weight moves") {
  const Config config = gpt2_config();
  const OnRanks got = on_ranks(8, [&](const Communicator& ranks) -> Floats {
    const RankGrid grid(ranks, {2, 2, 2});
    const std::vector<int> ids = tiny_ids();
    ModelWeights weights = weights_of(config);
    weights.blocks[2].w_q.floats()(0, 0) = std::numeric_limits<float>::quiet_NaN();
    GridTrainer trainer(grid, config, weights, options_of(4), ids);
    const GridShard& own = *trainer.shards()[0];
    Floats before, after;
    append(before, own.weights());
    std::string words;
    try {
      trainer.step();
    } catch (const std::runtime_error& error) {
      words = error.what();
    }
    append(after, own.weights());
    const auto same = [](float a, float b) { return a == b || (std::isnan(a) && std::isnan(b)); };
    Floats found(words.begin(), words.end());
    found.push_back(std::ranges::equal(before, after, same) ? 1.f : 0.f);
    return found;
  });
  const std::string words =
      "step 1: the gradient of embedding is not finite (loss nan); wanted a lower rate or more "
      "warm-up";
  Floats want(words.begin(), words.end());
  want.push_back(1);
  CHECK(first_wrong(got, want) == "");
}

TEST_CASE("a rank that does not take part is an error on the others after the time limit") {
  const OnRanks got = on_ranks(4, [&](const Communicator& ranks) -> Floats {
    Communicator world = ranks;
    world.limit = 0.3;
    const RankGrid grid(world, {1, 2, 2});
    const std::vector<int> ids = tiny_ids();
    const Config config = llama_config(false);
    GridTrainer trainer(grid, config, weights_of(config), options_of(2), ids);
    if (ranks.rank == 3) return {1};
    try {
      trainer.step();
    } catch (const std::runtime_error& error) {
      return {std::string(error.what()).find("after 0.3 seconds") != std::string::npos ? 1.f : 0.f};
    }
    return {0};
  });
  CHECK(first_wrong(got, {1}) == "");
}

TEST_CASE("what can't be trained on a grid is refused by name") {
  const std::vector<int> ids = tiny_ids();
  const Config config = llama_config(true);
  const auto made = [&](const GridShape& shape, const Config& whole, std::size_t parts,
                        std::size_t shards) {
    const RankGrid grid(all_ranks(), shape);
    GridTrainer trainer(grid, whole, weights_of(config), options_of(parts), ids, shards);
  };
  REFUSES(made({8, 1, 1}, config, 7, 0),
          "parts of a batch: wanted at least one for each of 8 ranks, got 7");
  REFUSES(made({1, 8, 1}, config, 1, 0),
          "L, the blocks: wanted at least one for each of 8 stages, got 3");
  Config four = config;
  four.block.G = 4;
  REFUSES(made({1, 1, 8}, four, 1, 0), "ranks that train: wanted at most G = 4, got 8");
  REFUSES(made({1, 1, 8}, config, 1, 4), "shards: wanted at least one for each of 8 ranks, got 4");
}

}  // namespace t2t::grid_tensor_tests
