// Chapter 19: what sharded training sends and stores, and how it ends when it has to.
#include "19_ranks/sharded/sharded_costs.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "19_ranks/on_ranks.hpp"
#include "19_ranks/tiny_sharded.hpp"
#include "support/refuses.hpp"

namespace t2t::sharded_costs_tests {

using namespace tiny_training;

/// What a step sends and what is stored, counted and measured, then by formula.
template <class Trainer>
static OnRanks counted(std::size_t p, TrainingSplit split, const Config& config, std::size_t parts,
                       SumOrder order) {
  return on_ranks(p, [&](const Communicator& ranks) -> Floats {
    const std::vector<int> ids = tiny_ids();
    Trainer trainer(ranks, drawn(config, 1), options_of(parts), ids, order);
    const Sent before = sent();
    trainer.step();
    const Sent now = sent() - before, cost = step_cost(split, order, config, parts, p, ranks.rank);
    const HeldBytes held = trainer.held_bytes(),
                    want = stored(split, order, config, parts, p, ranks.rank);
    return {float(now.messages),   float(now.bytes),      float(held.weights),
            float(held.gradients), float(held.optimizer), float(held.rooms),
            float(cost.messages),  float(cost.bytes),     float(want.weights),
            float(want.gradients), float(want.optimizer), float(want.rooms)};
  });
}

TEST_CASE("what a step sends, and what a rank stores, are the formulas', on each rank") {
  for (std::size_t p = 1; p <= most_ranks; ++p)
    for (const SumOrder order : {SumOrder::ring, SumOrder::pairs})
      for (const Config& config : {llama(), gpt2()})
        for (const std::size_t parts : {5, 8})
          for (const OnRanks& got :
               {counted<DataTrainer>(p, TrainingSplit::data, config, parts, order),
                counted<Zero1Trainer>(p, TrainingSplit::zero1, config, parts, order),
                counted<FsdpTrainer>(p, TrainingSplit::fsdp, config, parts, order)}) {
            CAPTURE(p);
            CAPTURE(parts);
            REQUIRE(got.error == "");
            for (const Floats& x : got.results)
              CHECK(Floats(x.begin(), x.begin() + 6) == Floats(x.begin() + 6, x.end()));
          }
}

TEST_CASE("by hand: bytes and memory of 4 ranks, where 4 divides every tensor") {
  const Config config = llama();
  const std::size_t P = weights_of(drawn(config, 1)).size();
  Config shallow = config;
  shallow.L = 1;
  const std::size_t of_one = weights_of(drawn(shallow, 1)).size();
  const std::size_t small = 3 * 4 * 2 * 4;  // nothing near P: losses and the norm
  const auto bytes_sent = [&](TrainingSplit split) {
    return step_cost(split, SumOrder::ring, config, 4, 4, 0).bytes;
  };
  REQUIRE(P % 4 == 0);
  CHECK(bytes_sent(TrainingSplit::data) - 2 * 3 * P < 2 * small);
  CHECK(bytes_sent(TrainingSplit::zero1) - 2 * 3 * P < 8 * small);
  // The table, 256·8, and the final norm, 8, are gathered once.
  CHECK(bytes_sent(TrainingSplit::fsdp) - (3 * 3 * P - 3 * (256 + 1) * 8) < 8 * small);
  const auto all_stored = [&](TrainingSplit split) {
    return stored(split, SumOrder::ring, config, 4, 4, 0);
  };
  CHECK(all_stored(TrainingSplit::data).all() ==
        20 * P);  // 16 P, and a copy of the gradient to be sent
  CHECK(all_stored(TrainingSplit::zero1).all() == 8 * P + 8 * P / 4);
  CHECK(all_stored(TrainingSplit::fsdp).all() == 16 * P / 4 + 8 * of_one);
}

TEST_CASE(
    "a step that is not finite ends on all ranks with the same words, and no weight has moved") {
  // The message's characters, and a 1 if the weights are as before the step; nothing if none threw.
  const auto thrown = [](const Communicator& ranks, auto trainer) -> Floats {
    for (int n = 0; n < 4; ++n) {
      const Floats before = weights_of(ranks, trainer);
      try {
        trainer.step();
      } catch (const std::runtime_error& error) {
        const std::string text = error.what();
        Floats found(text.begin(), text.end());
        found.push_back(before == weights_of(ranks, trainer) ? 1.f : 0.f);
        return found;
      }
    }
    return {};
  };
  TrainingOptions options = options_of(5);
  options.schedule = {.peak = 1e30f, .floor = 1e30f, .warmup = 0, .steps = steps};
  for (const SumOrder order : {SumOrder::ring, SumOrder::pairs}) {
    const OnRanks got = on_ranks(3, [&](const Communicator& ranks) {
      const std::vector<int> ids = tiny_ids();
      Floats both = thrown(ranks, Zero1Trainer(ranks, drawn(llama(), 1), options, ids, order));
      const Floats second =
          thrown(ranks, FsdpTrainer(ranks, drawn(llama(), 1), options, ids, order));
      both.insert(both.end(), second.begin(), second.end());
      return both;
    });
    REQUIRE(got.error == "");
    CHECK(first_wrong(got, got.results[0]) == "");
    const Floats& both = got.results[0];
    REQUIRE(both.size() % 2 == 0);
    CHECK(std::equal(both.begin(), both.begin() + std::ptrdiff_t(both.size() / 2),
                     both.begin() + std::ptrdiff_t(both.size() / 2)));
    CHECK(std::string(both.begin(), both.begin() + 5) == "step ");
    CHECK(both.back() == 1);
  }
}

TEST_CASE("sharded training refuses fewer parts than ranks, and blocks of different tensors") {
  const std::vector<int> ids = tiny_ids();
  REFUSES(Zero1Trainer(all_ranks(), drawn(llama(), 1), options_of(4), ids, SumOrder::ring),
          "parts of a batch: wanted at least one for each of 5 ranks, got 4");
  REFUSES(FsdpTrainer(all_ranks(), drawn(llama(), 1), options_of(4), ids, SumOrder::ring),
          "parts of a batch: wanted at least one for each of 5 ranks, got 4");
  Config mixed = llama();
  mixed.layers = settings_of_all(mixed);
  mixed.layers[2].head_norms = true;
  REFUSES(FsdpTrainer(all_ranks(), drawn(mixed, 1), options_of(5), ids, SumOrder::ring),
          "layer 2: wanted the tensors of layer 0, which has room for one block");
}

}  // namespace t2t::sharded_costs_tests
