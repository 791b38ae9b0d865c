// Chapter 19: a training on many ranks is the training on one.
#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "13_training/shows/show_gradients.hpp"
#include "19_ranks/collectives/pairs.hpp"
#include "19_ranks/counting/costs.hpp"
#include "19_ranks/data_parallel/data_trainer.hpp"
#include "19_ranks/on_ranks.hpp"
#include "19_ranks/tiny_training.hpp"
#include "support/refuses.hpp"

namespace t2t::data_parallel_tests {

using namespace tiny_training;

static Config tiny_config() { return small_config(8, 1, T); }

static Model model_of(std::uint64_t seed) { return drawn(tiny_config(), seed); }

/// The losses of some steps and the weights after them, on each of p ranks.
static OnRanks trained(std::size_t p, const TrainingOptions& options, SumOrder order) {
  return on_ranks(p, [&](const Communicator& ranks) {
    const std::vector<int> ids = tiny_ids();
    DataTrainer trainer(ranks, model_of(1), options, ids, order);
    Floats found;
    for (std::size_t n = 0; n < steps; ++n) append(found, trainer.step().loss);
    const Floats weights = weights_of(trainer.model());
    found.insert(found.end(), weights.begin(), weights.end());
    return found;
  });
}

TEST_CASE("on one rank, a batch of one part is trained on as in chapter 13, bit by bit") {
  const std::vector<int> ids = tiny_ids();
  Trainer trainer(model_of(1), options_of(1, 0.1f), ids);
  std::vector<double> losses;
  for (std::size_t n = 0; n < steps; ++n) losses.push_back(trainer.step().loss);
  for (const SumOrder order : {SumOrder::ring, SumOrder::pairs}) {
    const OnRanks got = trained(1, options_of(1, 0.1f), order);
    REQUIRE(got.error == "");
    const auto weights = got.results[0].begin() + 2 * steps;
    CHECK((Floats(weights, got.results[0].end()) == weights_of(trainer.model())));
    for (std::size_t n = 0; n < steps; ++n)  // a loss has lost what two floats don't hold
      CHECK(std::abs(double(got.results[0][2 * n]) + double(got.results[0][2 * n + 1]) -
                     losses[n]) <= 0x1p-45 * losses[n]);
  }
}

TEST_CASE(
    "in fixed pairs, losses and weights of 20 steps are the same bits on any number of ranks") {
  for (const std::size_t parts : {5, 8}) {
    const OnRanks alone = trained(1, options_of(parts, 0.1f), SumOrder::pairs);
    REQUIRE(alone.error == "");
    for (std::size_t p = 2; p <= most_ranks; ++p) {
      CAPTURE(parts);
      CAPTURE(p);
      CHECK(first_wrong(trained(p, options_of(parts, 0.1f), SumOrder::pairs), alone.results[0]) ==
            "");
    }
  }
}

TEST_CASE("on a ring, all ranks have the same weights after 20 steps") {
  for (std::size_t p = 2; p <= most_ranks; ++p) {
    CAPTURE(p);
    const OnRanks got = trained(p, options_of(7), SumOrder::ring);
    REQUIRE(got.error == "");
    CHECK(first_wrong(got, got.results[0]) == "");
  }
}

TEST_CASE("every one of 20 steps has the loss and gradient of one rank at equal weights") {
  for (const std::size_t p : {2, 3, 5})
    for (const SumOrder order : {SumOrder::ring, SumOrder::pairs}) {
      const TrainingOptions options = options_of(7);
      const OnRanks got = on_ranks(p, [&](const Communicator& ranks) -> Floats {
        const std::vector<int> ids = tiny_ids();
        DataTrainer trainer(ranks, model_of(1), options, ids, order);
        Floats worst = {0, 0};
        for (std::size_t n = 0; n < steps; ++n) {
          const Model before(tiny_config(), trainer.model().weights());
          const double loss = trainer.step().loss;
          const Floats errors = errors_of(before, options, n, trainer.gradient(), loss);
          for (std::size_t i = 0; i < 2; ++i) worst[i] = std::max(worst[i], errors[i]);
        }
        return worst;
      });
      CAPTURE(p);
      REQUIRE(got.error == "");
      for (const Floats& worst : got.results) {
        CHECK(worst[0] <= 1);
        CHECK(worst[1] <= 1);
      }
    }
}

TEST_CASE("all ranks start with rank 0's weights, whatever they drew") {
  const OnRanks got = on_ranks(3, [](const Communicator& ranks) {
    const std::vector<int> ids = tiny_ids();
    const DataTrainer trainer(ranks, model_of(1 + ranks.rank), options_of(3), ids, SumOrder::ring);
    return weights_of(trainer.model());
  });
  CHECK(first_wrong(got, weights_of(model_of(1))) == "");
}

TEST_CASE("what a step sends is the formula's, on each rank") {
  for (std::size_t p = 1; p <= most_ranks; ++p)
    for (const SumOrder order : {SumOrder::ring, SumOrder::pairs}) {
      const TrainingOptions options = options_of(7);
      const std::size_t n = weights_of(model_of(1)).size();
      const OnRanks got = on_ranks(p, [&](const Communicator& ranks) -> Floats {
        const std::vector<int> ids = tiny_ids();
        DataTrainer trainer(ranks, model_of(1), options, ids, order);
        const Sent before = sent();
        trainer.step();
        const Sent now = sent() - before;
        return {float(now.messages), float(now.bytes)};
      });
      REQUIRE(got.error == "");
      for (std::size_t r = 0; r < p; ++r) {
        CAPTURE(p);
        CAPTURE(r);
        const Sent gradient = order == SumOrder::ring
                                  ? ring_all_reduce_cost(n, p, r)
                                  : pairs_all_reduce_cost(n, options.parts, p, r);
        const Sent want = gradient + tree_all_reduce_cost(2 * options.parts, p, r);
        CHECK(got.results[r] == Floats{float(want.messages), float(want.bytes)});
      }
    }
}

TEST_CASE("a batch has a part for each rank, and a sum in pairs the parts of its rank") {
  const std::vector<int> ids = tiny_ids();
  REFUSES(DataTrainer(all_ranks(), model_of(1), options_of(4), ids, SumOrder::ring),
          "parts of a batch: wanted at least one for each of 5 ranks, got 4");
  std::vector<Floats> own(3, Floats(2));
  REFUSES(pairs_all_reduce(all_ranks(), own, 4), "parts: wanted at least 5, got 4");
  REFUSES(pairs_all_reduce(all_ranks(), own, 5), "own parts: wanted 1, got 3");
}

}  // namespace t2t::data_parallel_tests
