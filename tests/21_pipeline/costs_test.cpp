// Chapter 21: what a stage sends and saves is the formula's.
#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "19_ranks/on_ranks.hpp"
#include "21_pipeline/stages/pipeline_costs.hpp"
#include "21_pipeline/tiny_pipeline.hpp"

namespace t2t::pipeline_costs_tests {

using namespace tiny_pipeline;

TEST_CASE("what a step sends is the formula's, on each rank") {
  for (const Config& config : {llama(true), gpt2(false)})
    for (std::size_t p = 1; p <= most_ranks; ++p)
      for (const std::size_t parts : {1, 3}) {
        const OnRanks got = on_ranks(p, [&](const Communicator& ranks) -> Floats {
          const std::vector<int> ids = tiny_ids();
          PipelineTrainer trainer(ranks, config, drawn_weights(config), options_of(parts), ids,
                                  PipelineSchedule::one_f_one_b);
          const Sent before = sent();
          trainer.step();
          const Sent now = sent() - before;
          return {float(now.messages), float(now.bytes)};
        });
        REQUIRE(got.error == "");
        for (std::size_t s = 0; s < p; ++s) {
          CAPTURE(p);
          CAPTURE(s);
          CAPTURE(parts);
          const Sent want = pipeline_step_cost(config, {s, p}, T, parts);
          CHECK(got.results[s] == Floats{float(want.messages), float(want.bytes)});
        }
      }
  // By hand: an inner stage of SmolLM2-135M, 8 micro-batches of 2,048 tokens with C = 576.
  CHECK(neighbours_cost(preset("smollm2-135m"), {1, 4}, 2048, 8) ==
        Sent{16, 16ull * 2048 * 576 * 4});
}

TEST_CASE("a stage saves its own blocks for the micro-batches in flight, and no others") {
  constexpr std::size_t parts = 6;
  for (const Config& config : {llama(true), gpt2(false), windows()})
    for (std::size_t p = 1; p <= most_ranks; ++p)
      for (const PipelineSchedule schedule : both_schedules) {
        const OnRanks got = on_ranks(p, [&](const Communicator& ranks) -> Floats {
          const std::vector<int> ids = tiny_ids();
          PipelineTrainer trainer(ranks, config, drawn_weights(config), options_of(parts), ids,
                                  schedule);
          return {float(trainer.stage().kept_bytes())};
        });
        REQUIRE(got.error == "");
        for (std::size_t s = 0; s < p; ++s) {
          CAPTURE(p);
          CAPTURE(s);
          const std::size_t flying =
              schedule == PipelineSchedule::gpipe ? parts : std::min(parts, p - s);
          CHECK(got.results[s] == Floats{float(kept_cost(config, {s, p}, T, flying))});
        }
      }
  // By hand: SmolLM2's block saves 5,760 elements per token (C = 576, H·D = 576, G·D = 192,
  // F = 1,536). The first of four stages has 8 of its 30 blocks.
  CHECK(kept_cost(preset("smollm2-135m"), {0, 4}, 100, 4) == 4ull * 8 * 100 * 5760 * 4);
  CHECK(kept_cost(preset("smollm2-135m"), {3, 4}, 100, 1) == 100ull * (7 * 5760 + 576) * 4);
}

}  // namespace t2t::pipeline_costs_tests
