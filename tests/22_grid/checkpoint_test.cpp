// Chapter 22: a grid goes on from a checkpoint that another grid has written.
#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "09_language_model/cases.hpp"
#include "21_pipeline/shared_folder.hpp"
#include "21_pipeline/stages/pipeline_trainer.hpp"
#include "22_grid/tiny_mixture.hpp"

namespace t2t::grid_checkpoint_tests {

using namespace tiny_grid;
namespace fs = std::filesystem;

constexpr std::size_t before = 2, after = 2;

/// What each rank finds in the steps after the first ones: its losses and norms, then what it has
/// learned. It has made the first ones itself, and writes them to the folder; or it begins with
/// other weights and reads them there.
enum class Begin { here, here_and_write, in_folder };
static TrainedMixture second_half(const GridShape& shape, const MixtureRun& run, Begin begin,
                                  const fs::path& folder = "") {
  const OnRanks got = on_ranks(shape.ranks(), [&](const Communicator& ranks) {
    const RankGrid grid(ranks, shape);
    const std::vector<int> ids = tiny_ids();
    Random random(begin == Begin::in_folder ? 8 : 3);
    GridTrainer trainer(grid, run.config, draw_model(run.config, random), run.options, ids,
                        run.shards, run.balance);
    if (begin == Begin::in_folder)
      trainer.resume(folder);
    else
      for (std::size_t n = 0; n < before; ++n) trainer.step();
    if (begin == Begin::here_and_write) trainer.save(folder);
    Floats found;
    for (std::size_t n = 0; n < after; ++n) {
      const StepReport report = trainer.step();
      append_exactly(found, report.loss);
      append_exactly(found, report.gradient_norm);
    }
    const Range own = shards_of(shape, grid.place(), run.shards);
    for (std::size_t i = 0; i < own.size(); ++i)
      append_learned(found, trainer.shards()[i]->weights(), run.config, own.begin + i);
    return found;
  });
  return put_together(got, 6 * after);
}

TEST_CASE("a mixture goes on with the same bits on another grid of data, stages and experts") {
  const SharedFolder folder("t2t-grid");
  const MixtureRun run{.balance = {.switch_loss = 0.5f}};
  const TrainedMixture want = second_half({1, 1, 1, 1}, run, Begin::here);
  REQUIRE(want.error == "");
  CHECK(first_unlike(second_half({2, 1, 1, 2}, run, Begin::here_and_write, folder.path), want) ==
        "");
  for (const GridShape& shape :
       {GridShape{1, 3, 1, 2}, GridShape{1, 1, 1, 1}, GridShape{1, 1, 1, 4}}) {
    INFO(text_of(shape));
    CHECK(first_unlike(second_half(shape, run, Begin::in_folder, folder.path), want) == "");
  }
}

TEST_CASE("with a number of shards, also on another number of tensor ranks") {
  const SharedFolder folder("t2t-grid");
  for (const Config& config : {mixture_config(), gpt2_config()}) {
    const MixtureRun run{.config = config, .shards = 4};
    const bool mixture = config.block.experts > 0;
    const TrainedMixture want = second_half({1, 1, 1, 1}, run, Begin::here);
    REQUIRE(want.error == "");
    const GridShape writer = {2, 1, 3, 1}, reader = {1, 2, 2, mixture ? 2u : 1u};
    CHECK(first_unlike(second_half(writer, run, Begin::here_and_write, folder.path), want) == "");
    CHECK(first_unlike(second_half(reader, run, Begin::in_folder, folder.path), want) == "");
  }
}

TEST_CASE("tensor ranks without a number of shards read what others wrote, within a bound") {
  // The first loss after it is that of the same weights, whose sums are added in another order.
  const SharedFolder folder("t2t-grid");
  const MixtureRun run{};
  const TrainedMixture want = second_half({1, 2, 2, 1}, run, Begin::here_and_write, folder.path);
  REQUIRE(want.error == "");
  for (const GridShape& shape : {GridShape{1, 1, 1, 1}, GridShape{1, 1, 3, 1}}) {
    INFO(text_of(shape));
    const TrainedMixture got = second_half(shape, run, Begin::in_folder, folder.path);
    REQUIRE(got.error == "");
    const double loss = double(got.reports[0]) + double(got.reports[1]);
    const double wanted = double(want.reports[0]) + double(want.reports[1]);
    CHECK(std::abs(loss / wanted - 1) <= Case{"", run.config, 1}.bound(1));
  }
}

TEST_CASE("a pipeline of chapter 21 and a grid read each other's checkpoints") {
  const SharedFolder folder("t2t-grid");
  const Config config = llama_config(true);
  const TrainingOptions options = options_of(4, 0.1f);
  const auto pipeline = [&](std::size_t p, bool reads) {
    return on_ranks(p, [&](const Communicator& ranks) -> Floats {
      const std::vector<int> ids = tiny_ids();
      PipelineTrainer trainer(ranks, config, weights_of(config), options, ids,
                              PipelineSchedule::gpipe);
      if (reads)
        trainer.resume(folder.path);
      else
        trainer.step(), trainer.save(folder.path);
      return {float(trainer.steps_done()), float(trainer.step().loss)};
    });
  };
  const auto grid = [&](const GridShape& shape, bool writes) {
    return on_ranks(shape.ranks(), [&](const Communicator& ranks) -> Floats {
      const RankGrid lines(ranks, shape);
      const std::vector<int> ids = tiny_ids();
      GridTrainer trainer(lines, config, weights_of(config), options, ids);
      trainer.resume(folder.path);
      if (writes) trainer.save(folder.path);
      return {float(trainer.steps_done()), float(trainer.step().loss)};
    });
  };
  const OnRanks wrote = pipeline(3, false);
  REQUIRE(wrote.error == "");
  // A loss as a float has the same bits, although data ranks add gradients in another order later.
  CHECK(first_wrong(grid({2, 2, 1}, true), wrote.results[0]) == "");
  CHECK(first_wrong(pipeline(2, true), wrote.results[0]) == "");
}

}  // namespace t2t::grid_checkpoint_tests
