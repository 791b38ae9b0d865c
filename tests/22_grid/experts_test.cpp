// Chapter 22: a mixture of experts is trained on a grid of data, stages, tensor and expert ranks.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "09_language_model/cases.hpp"
#include "14_mixture_of_experts/model/mixture_network.hpp"
#include "22_grid/tiny_mixture.hpp"
#include "support/refuses.hpp"

namespace t2t::grid_experts_tests {

using namespace tiny_grid;

static const std::vector<GridShape> without_tensor = {{2, 1, 1, 1}, {1, 1, 1, 2}, {1, 3, 1, 2},
                                                      {2, 1, 1, 2}, {1, 1, 1, 4}, {2, 2, 1, 2}};
static const GridBalance of_batch = {.switch_loss = 0.5f, .z_loss = 0.1f};
static const GridBalance of_micro_batch = {.switch_loss = 0.5f, .loads = LoadsOf::micro_batch};

TEST_CASE("on any number of data ranks, expert ranks and stages, all numbers have the same bits") {
  for (const GridBalance& balance : {of_batch, of_micro_batch}) {
    MixtureRun run{.balance = balance};
    run.options.clip = 0.05;  // below every step's norm
    const TrainedMixture alone = trained_mixture({1, 1, 1, 1}, run);
    REQUIRE(alone.error == "");
    for (const GridShape& shape : without_tensor) {
      INFO(text_of(shape));
      CHECK(first_unlike(trained_mixture(shape, run), alone) == "");
    }
  }
}

TEST_CASE("with a number of shards, the same bits on every grid of four directions") {
  MixtureRun run{.shards = 4, .balance = of_batch};
  run.options.clip = 0.05;
  const TrainedMixture alone = trained_mixture({1, 1, 1, 1}, run);
  REQUIRE(alone.error == "");
  for (const GridShape& shape :
       {GridShape{1, 2, 2, 2}, GridShape{2, 1, 2, 2}, GridShape{1, 1, 3, 2}}) {
    INFO(text_of(shape));
    CHECK(first_unlike(trained_mixture(shape, run), alone) == "");
  }
}

TEST_CASE("counts of the batch and of each micro-batch give different losses") {
  const TrainedMixture batch = trained_mixture({1, 1, 1, 1}, {.steps = 1, .balance = of_batch});
  MixtureRun other{.steps = 1, .balance = of_batch};
  other.balance.loads = LoadsOf::micro_batch;
  const TrainedMixture micro = trained_mixture({1, 1, 1, 1}, other);
  // Of parts with other loads, Σ f·P is larger than of the batch, in which they even out.
  CHECK(micro.reports[0] > batch.reports[0] + 0.001f);
}

TEST_CASE("by hand: a batch of two micro-batches that use one expert each") {
  // Each micro-batch has p = (1, 0) or (0, 1). Its own load is uneven, that of both is even.
  Routed routed = {{}, Tensor<2>({{1, 0}, {1, 0}}), {0, 0}, Tensor<2>({{1}, {1}})};
  Tensor<2> dp = xt::zeros<float>({2, 2});
  CHECK(switch_loss(routed, Tensor<1>({0.5f, 0.5f}), 3, dp) == 3);
  CHECK((dp == Tensor<2>({{1.5f, 1.5f}, {1.5f, 1.5f}})));  // 3·E/T·f
  dp.fill(0);
  CHECK(switch_loss(routed, loads_of(routed.experts, 2), 3, dp) == 6);
  CHECK((dp == Tensor<2>({{3, 0}, {3, 0}})));
  Tensor<2> of_14 = xt::zeros<float>({2, 2});
  CHECK(balance_loss(routed, 3, of_14) == 6);
  CHECK((dp == of_14));
}

/// One step of chapter 14's mixture on one rank, with the whole batch in one part.
struct WholeBatch {
  ModelWeights gradients;
  double loss = 0, norm = 0;

  explicit WholeBatch(const MixtureRun& run) : gradients(zeros_of(run.config)) {
    const std::vector<int> ids = tiny_ids();
    const Balance balance = {run.balance.switch_loss, run.balance.z_loss};
    TrainedExperts experts(run.config.L, run.config.block.experts, Scoring::softmax, balance);
    Windows windows(ids, T, run.options.seed);
    Batch batch = make_batch(run.options.B * run.options.parts, T);
    windows.fill(batch, 0);
    Gradients passes(run.config, batch.B, T, {.network = experts.network()});
    const double tokens = double(batch.B * T);
    loss =
        passes.add(Model(run.config, weights_of(run.config)), batch, 1 / float(tokens), gradients) /
            tokens +
        passes.extra_loss();
    double squares = 0;
    for (const ListedTensor& tensor : tensors_of(gradients, run.config))
      for (const float g : tensor.numbers) squares += double(g) * double(g);
    norm = std::sqrt(squares);
  }
};

/// The elements that a shard has of a whole tensor.
static Floats cut(ConstRow whole, const TensorInfo& info, const Config& config, Shard shard) {
  const Piece piece = grid_piece_of(info, config, shard);
  Floats part;
  for (const Range& rows : piece.rows)
    for (std::size_t r = rows.begin; r < rows.end; ++r)
      for (std::size_t c = piece.cols.begin; c < piece.cols.end; ++c)
        part.push_back(whole[r * info.cols + c]);
  return part;
}

/// The largest error as a share of chapter 20's bound: a pass keeps K·u of what goes through it,
/// there and back, and an element is compared with the root mean square of its tensor.
static double error_of(const Floats& got, const Floats& want, double bound) {
  if (got.size() != want.size()) return 99;
  double squares = 0, worst = 0;
  for (const float w : want) squares += double(w) * double(w);
  const double rms = std::sqrt(squares / double(want.size()));
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (got[i] == want[i]) continue;  // such as the zeros of an expert without tokens
    const double share =
        std::abs(double(got[i]) - double(want[i])) / (bound * (rms + std::abs(double(want[i]))));
    worst = std::isnan(share) ? 99 : std::max(worst, share);
  }
  return worst;
}

TEST_CASE(
    "gradients, their norm and the loss are within the bound those of one rank of chapter "
    "14 that has the whole batch in one piece") {
  for (const GridBalance& balance : {GridBalance{}, of_batch}) {
    MixtureRun run{.options = options_of(4), .steps = 1, .balance = balance};
    run.config.tied = false;  // a tied table has two gradients
    run.options.clip = 0;
    WholeBatch want(run);
    const double bound = Case{"", run.config, 1}.bound(1);
    for (const GridShape& shape :
         {GridShape{2, 1, 1, 2}, GridShape{1, 2, 2, 2}, GridShape{1, 1, 3, 1}}) {
      INFO(text_of(shape));
      const TrainedMixture got = trained_mixture(shape, run, Found::gradients);
      REQUIRE(got.error == "");
      const double loss = double(got.reports[0]) + double(got.reports[1]);
      const double norm = double(got.reports[3]) + double(got.reports[4]);
      CHECK(std::abs(loss / want.loss - 1) <= bound);
      CHECK(std::abs(norm / want.norm - 1) <= 4 * bound);
      std::size_t checked = 0;
      for (const ListedTensor& tensor : tensors_of(want.gradients, run.config))
        for (std::size_t shard = 0; shard < shape.tensor; ++shard) {
          const auto found = got.tensors.find({number_of(tensor.info, run.config), shard});
          REQUIRE(found != got.tensors.end());
          const Floats part = cut(tensor.numbers, tensor.info, run.config, {shard, shape.tensor});
          INFO(full_name(tensor.info));
          CHECK(error_of(found->second, part, 4 * bound) <= 1);
          ++checked;
        }
      CHECK(checked == got.tensors.size());
    }
  }
}

static Floats numbers_of(const GridSent& sent, const Sent& all, const GridMemory& memory) {
  Floats found;
  for (const Sent& one : {sent.tensor, sent.stages, sent.data, sent.experts, sent.values, all})
    found.push_back(float(one.messages)), found.push_back(float(one.bytes));
  for (const std::size_t bytes :
       {memory.held.weights, memory.held.gradients, memory.held.optimizer, memory.kept})
    found.push_back(float(bytes));
  return found;
}

/// "" if every rank has sent and stores what the formulas say in a step.
static std::string first_wrong_cost(const GridShape& shape, std::size_t shards,
                                    const GridBalance& balance) {
  const Config config = mixture_config();
  const TrainingOptions options = options_of(shape.experts == 3 ? 3 : 4);
  const OnRanks got = on_ranks(shape.ranks(), [&](const Communicator& ranks) {
    const RankGrid grid(ranks, shape);
    const std::vector<int> ids = tiny_ids();
    GridTrainer trainer(grid, config, weights_of(config), options, ids, shards, balance);
    const Sent before = sent();
    trainer.step();
    const Sent all = sent() - before;
    const GridMemory memory = {trainer.held_bytes(), trainer.kept_bytes()};
    Floats found = numbers_of(trainer.sent_in_step(), all, memory);
    found.push_back(float(trainer.rows_exchanged()));
    return found;
  });
  // How many rows there are depends on the text; the last number is what was counted.
  std::size_t rank = 0;
  return first_wrong_place(got, shape, [&](const GridPlace& place) {
    const float rows = got.results[rank++].back();
    const GridSent sent =
        grid_step_cost(config, shape, place, options, shards, balance, std::size_t(rows));
    Floats want = numbers_of(sent, sent.together(),
                             grid_memory(config, shape, place, options, shards, balance));
    want.push_back(shape.experts > 1 ? std::max(rows, 1.0f) : 0);
    return want;
  });
}

TEST_CASE("messages, bytes and memory of a mixture are the formulas'") {
  CHECK(first_wrong_cost({1, 1, 1, 1}, 0, of_batch) == "");
  CHECK(first_wrong_cost({2, 1, 1, 2}, 0, of_batch) == "");
  CHECK(first_wrong_cost({1, 1, 2, 3}, 0, {}) == "");
  CHECK(first_wrong_cost({1, 2, 2, 2}, 0, of_micro_batch) == "");
  CHECK(first_wrong_cost({1, 2, 2, 2}, 4, of_batch) == "");
}

TEST_CASE("by hand: what a rank of two expert ranks and two tensor ranks has") {
  // Of 5 experts, rank 0 has 3. Each has 13 channels, of which the second shard has 7.
  const Config config = mixture_config();
  const GridShape shape = {1, 1, 2, 2};
  const std::size_t expert = 3 * 24 * 7;
  const std::size_t others = 3 * (4 * 24 * 16 + 2 * 24 + 5 * 24) + 24 + 2 * 27 * 24;
  const GridMemory memory = grid_memory(config, shape, {0, 0, 1, 0}, options_of(4));
  CHECK(memory.held.weights == 4 * (3 * 3 * expert + others));
  // A row of gradients for each micro-batch: two own ones, and of experts also the other rank's.
  CHECK(memory.held.gradients == 4 * ((4 + 1) * 3 * 3 * expert + (2 + 1) * others));
}

TEST_CASE("what can't be trained is refused by name") {
  const std::vector<int> ids = tiny_ids();
  const auto made = [&](const GridShape& shape, const Config& whole, std::size_t parts) {
    const RankGrid grid(all_ranks(), shape);
    GridTrainer trainer(grid, whole, weights_of(whole), options_of(parts), ids);
  };
  REFUSES(made({1, 1, 1, 8}, llama_config(true), 8),
          "experts of a layer: wanted at least one for each of 8 expert ranks, got 0");
  REFUSES(made({1, 1, 1, 8}, mixture_config(), 8),
          "experts of a layer: wanted at least one for each of 8 expert ranks, got 5");
  REFUSES(made({4, 1, 1, 2}, mixture_config(), 12),
          "parts of a batch: wanted a multiple of 8, data ranks times expert ranks, got 12");
  const RankGrid eight(all_ranks(), {8, 1, 1});
  REFUSES(GridTrainer(eight, llama_config(true), weights_of(llama_config(true)), options_of(8), ids,
                      0, of_batch),
          "balance: wanted no losses for a model without experts");
  Config shared = mixture_config();
  shared.block.shared = 8;
  REFUSES(made({4, 1, 1, 2}, shared, 8), "shared: wanted experts alone, got a network beside them");
  const ModelWeights own =
      grid_shard_of(weights_of(mixture_config()), mixture_config(), {0, 2}, {1, 2});
  REFUSES_AS(matmul_bt(xt::zeros<float>({2, 24}), own.blocks[1].experts[0].w_up),
             "an expert of another rank was used", std::logic_error);
  CHECK(own.blocks[1].experts[3].w_up.rows() == 6);
}

}  // namespace t2t::grid_experts_tests
