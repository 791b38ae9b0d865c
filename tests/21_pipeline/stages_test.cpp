// Chapter 21: which tensors a stage has, and the messages between stages.
#include <doctest/doctest.h>

#include <map>
#include <string>
#include <vector>

#include "19_ranks/on_ranks.hpp"
#include "21_pipeline/tiny_pipeline.hpp"
#include "support/refuses.hpp"

namespace t2t::pipeline_stages_tests {

using namespace tiny_pipeline;

static std::vector<std::size_t> block_counts(std::size_t L, std::size_t stages) {
  Config config = llama(true);
  config.L = L;
  std::vector<std::size_t> counts;
  std::size_t next = 0;
  for (std::size_t s = 0; s < stages; ++s) {
    const Range blocks = blocks_of(config, {s, stages});
    CHECK(blocks.begin == next);
    next = blocks.end;
    counts.push_back(blocks.size());
  }
  CHECK(next == L);
  return counts;
}

TEST_CASE("by hand: blocks that don't divide evenly go to the first stages") {
  CHECK(block_counts(5, 2) == std::vector<std::size_t>{3, 2});
  CHECK(block_counts(5, 5) == std::vector<std::size_t>{1, 1, 1, 1, 1});
  CHECK(block_counts(30, 4) == std::vector<std::size_t>{8, 8, 7, 7});
  CHECK(block_counts(7, 1) == std::vector<std::size_t>{7});
  Config four = llama(true);
  four.L = 4;
  REFUSES(blocks_of(four, {0, 5}),
          "L, the blocks: wanted at least one for each of 5 stages, got 4");
  REFUSES(blocks_of(four, {2, 2}), "stage: wanted below 2, got 2");
}

TEST_CASE("each tensor belongs to one stage, and a tied table to the first and to the last") {
  for (const Config& config : {llama(true), gpt2(false), gpt2(true), windows()})
    for (std::size_t stages = 1; stages <= 5; ++stages) {
      CAPTURE(stages);
      ModelWeights weights = drawn_weights(config);
      std::map<std::string, std::size_t> owners, counted;
      std::size_t wrong = 0;
      for (std::size_t s = 0; s < stages; ++s) {
        ModelWeights own = stage_weights(weights, config, {s, stages});
        const Model model(stage_config(config, {s, stages}), own);  // checks all shapes
        const std::vector<ListedTensor> list = stage_tensors(own, config, {s, stages});
        for (const ListedTensor& tensor : list) {
          ++owners[full_name(tensor.info)];
          wrong += tensor.info.size() != tensor.numbers.size();
        }
        for (const ListedTensor& tensor : counted_once(list, config))
          counted[full_name(tensor.info)] += tensor.numbers.size();
      }
      CHECK(wrong == 0);
      std::map<std::string, std::size_t> sizes;
      for (const ListedTensor& tensor : tensors_of(weights, config))
        sizes[full_name(tensor.info)] = tensor.numbers.size();
      CHECK((counted == sizes));
      CHECK(owners.size() == sizes.size() + (config.tied ? 1 : 0));
      CHECK(owners["head"] == 1);
      for (const auto& [name, count] : owners) wrong += count != 1;
      CHECK(wrong == 0);
    }
}

TEST_CASE("by hand: what three stages of a tied model have") {
  const Config config = gpt2(true);
  const ModelWeights weights = drawn_weights(config);
  const auto names = [&](std::size_t stage) {
    ModelWeights own = stage_weights(weights, config, {stage, 3});
    std::vector<std::string> found;
    for (const ListedTensor& tensor : stage_tensors(own, config, {stage, 3}))
      if (const std::string name = full_name(tensor.info);
          name.find("layer") == name.npos || name.find("w_q") != name.npos)
        found.push_back(name);
    return found;
  };
  CHECK(names(0) ==
        std::vector<std::string>{"embedding", "positions", "layer 0: w_q", "layer 1: w_q"});
  CHECK(names(1) == std::vector<std::string>{"layer 2: w_q", "layer 3: w_q"});
  CHECK(names(2) ==
        std::vector<std::string>{"head", "layer 4: w_q", "final_norm.gain", "final_norm.bias"});
}

/// A vector as a matrix of one row.
static Matrix one_row(Floats& x) { return {x.data(), 1, x.size(), x.size()}; }

TEST_CASE("two stages may send to each other at the same time, and change what they have sent") {
  for (const std::size_t n : {1, 1000, 300'000}) {
    CAPTURE(n);
    const OnRanks got = on_ranks(2, [n](const Communicator& ranks) {
      Communicator own = first_ranks(ranks, 2);
      own.limit = 5;
      Neighbours neighbours(own, 2);
      Floats x = fractions(ranks.rank, n), y(n), received;
      for (const std::size_t part : {0, 1}) {
        x[0] = float(part);
        if (ranks.rank == 0)
          neighbours.send_x(one_row(x), part);
        else
          neighbours.send_dx(one_row(x), part);
        std::ranges::fill(x, -1.f);  // as the next operation does
        x = fractions(ranks.rank, n);
        if (ranks.rank == 0)
          neighbours.receive_dx(one_row(y), part);
        else
          neighbours.receive_x(one_row(y), part);
        received.insert(received.end(), y.begin(), y.end());
      }
      neighbours.finish();
      return received;
    });
    REQUIRE(got.error == "");
    for (const std::size_t rank : {0, 1}) {
      Floats want;
      for (const float part : {0.f, 1.f}) {
        Floats x = fractions(1 - rank, n);
        x[0] = part;
        want.insert(want.end(), x.begin(), x.end());
      }
      CHECK((got.results[rank] == want));
    }
  }
}

TEST_CASE("a slot is free again after its backward pass, and not before") {
  const OnRanks got = on_ranks(1, [](const Communicator& ranks) -> Floats {
    const Config config = llama(true);
    Stage stage(ranks, config, drawn_weights(config), {.B = 1, .T = T, .parts = 4, .slots = 2});
    const Batch batch = first_batch(tiny_ids(), 1, T);
    stage.forward(0, batch, 1, {});
    stage.forward(1, batch, 1, {});
    const auto refuses = [](const std::function<void()>& call, const std::string& words) {
      return refusal_of<std::logic_error>(call, words) ? 1.f : 0.f;
    };
    Floats found = {
        refuses([&] { stage.forward(2, batch, 1, {}); }, "micro-batch 2: wanted a free slot"),
        refuses([&] { stage.backward(2, {}); }, "micro-batch 2: wanted one in flight")};
    stage.backward(0, {});
    stage.forward(2, batch, 1, {});
    found.push_back(refuses([&] { stage.backward(0, {}); }, "micro-batch 0: wanted one in flight"));
    found.push_back(float(stage.times().size()));
    return found;
  });
  CHECK(first_wrong(got, {1, 1, 1, 4}) == "");
}

TEST_CASE("a neighbour that does not take part is an error after the time limit") {
  for (const PipelineSchedule schedule : both_schedules) {
    const OnRanks got = on_ranks(3, [&](const Communicator& ranks) -> Floats {
      Communicator own = first_ranks(ranks, 3);
      own.limit = 0.3;
      const std::vector<int> ids = tiny_ids();
      const Config config = llama(true);
      PipelineTrainer trainer(own, config, drawn_weights(config), options_of(2), ids, schedule);
      if (ranks.rank == 1) return {1};
      const std::string words = "rank " + std::to_string(ranks.rank) +
                                ": 64 elements from rank 1 have not gone through after 0.3 seconds";
      try {
        trainer.step();
      } catch (const std::runtime_error& error) {  // which also says what all ranks wait for
        return {std::string(error.what()).starts_with(words) ? 1.f : 0.f};
      }
      return {0};
    });
    CHECK(first_wrong(got, {1}) == "");
  }
}

TEST_CASE("what can't be a pipeline is refused by name") {
  const std::vector<int> ids = tiny_ids();
  Config four = llama(true);
  four.L = 4;
  const ModelWeights weights = drawn_weights(four);
  const auto made = [&](std::size_t parts) {
    PipelineTrainer trainer(all_ranks(), four, weights, options_of(parts), ids,
                            PipelineSchedule::gpipe);
  };
  REFUSES(made(1), "L, the blocks: wanted at least one for each of 5 stages, got 4");
  REFUSES(made(0), "parts of a batch: wanted at least 1, got 0");
  REFUSES(Neighbours(all_ranks(), 16'001), "parts of a batch: wanted at most 16000, got 16001");
}

}  // namespace t2t::pipeline_stages_tests
