// Chapter 19: a training whose optimizer, or whole state, is sharded is the training on one rank.
#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "19_ranks/on_ranks.hpp"
#include "19_ranks/tiny_sharded.hpp"

namespace t2t::sharded_tests {

using namespace tiny_training;

/// The losses of 20 steps and the weights after them, on each of p ranks.
template <class Trainer>
static OnRanks trained(std::size_t p, const Config& config, const TrainingOptions& options,
                       SumOrder order) {
  return on_ranks(p, [&](const Communicator& ranks) {
    const std::vector<int> ids = tiny_ids();
    Trainer trainer(ranks, drawn(config, 1), options, ids, order);
    Floats found;
    for (std::size_t n = 0; n < steps; ++n) append(found, trainer.step().loss);
    const Floats weights = weights_of(ranks, trainer);
    found.insert(found.end(), weights.begin(), weights.end());
    return found;
  });
}

TEST_CASE("in pairs, every split has the bits of one rank that holds everything") {
  for (const std::size_t parts : {5, 8}) {
    const Config config = parts == 8 ? llama() : gpt2();
    // Without clipping: chapter 13's norm, which DataTrainer takes, is a sum in another order.
    TrainingOptions options = options_of(parts, 0.1f);
    options.clip = 0;
    const OnRanks alone = trained<DataTrainer>(1, config, options, SumOrder::pairs);
    REQUIRE(alone.error == "");
    for (std::size_t p = 1; p <= most_ranks; ++p) {
      CAPTURE(parts);
      CAPTURE(p);
      CHECK(first_wrong(trained<Zero1Trainer>(p, config, options, SumOrder::pairs),
                        alone.results[0]) == "");
      CHECK(first_wrong(trained<FsdpTrainer>(p, config, options, SumOrder::pairs),
                        alone.results[0]) == "");
    }
  }
}

TEST_CASE("in pairs, clipped steps have the same bits on any number of ranks, in both splits") {
  TrainingOptions options = options_of(7);
  options.clip = 0.05;  // below every step's norm
  const OnRanks alone = trained<Zero1Trainer>(1, llama(), options, SumOrder::pairs);
  REQUIRE(alone.error == "");
  for (const std::size_t p : {1, 3, 4}) {
    CAPTURE(p);
    CHECK(first_wrong(trained<Zero1Trainer>(p, llama(), options, SumOrder::pairs),
                      alone.results[0]) == "");
    CHECK(first_wrong(trained<FsdpTrainer>(p, llama(), options, SumOrder::pairs),
                      alone.results[0]) == "");
  }
}

/// The model before a step, on every rank.
static Model model_of(const Communicator&, const Zero1Trainer& trainer, const Config& config) {
  return Model(config, trainer.model().weights());
}
static Model model_of(const Communicator& ranks, const FsdpTrainer& trainer, const Config& config) {
  const Floats all = weights_of(ranks, trainer);
  ModelWeights weights = zeros_of(config);
  std::size_t begin = 0;
  for (const ListedTensor& tensor : tensors_of(weights, config)) {
    std::copy_n(all.begin() + std::ptrdiff_t(begin), tensor.numbers.size(), tensor.numbers.begin());
    begin += tensor.numbers.size();
  }
  return Model(config, std::move(weights));
}

/// The worst errors of some steps' gradients, losses and norms on a ring as shares of their bounds.
template <class Trainer>
static OnRanks worst_errors(std::size_t p, const Config& config) {
  TrainingOptions options = options_of(7);
  options.clip = 0;
  return on_ranks(p, [&](const Communicator& ranks) -> Floats {
    const std::vector<int> ids = tiny_ids();
    Trainer trainer(ranks, drawn(config, 1), options, ids, SumOrder::ring);
    Floats worst = {0, 0, 0};
    for (std::size_t n = 0; n < 6; ++n) {
      const Model before = model_of(ranks, trainer, config);
      const StepReport report = trainer.step();
      const Floats gradient = whole_of(ranks, trainer.gradient());
      Floats errors = errors_of(before, options, n, gradient, report.loss);
      double squares = 0;  // a sum in double of n terms is off by at most n·2^-53 of itself
      for (const float g : gradient) squares += double(g) * double(g);
      const double bound = 2 * double(gradient.size()) * 0x1p-53;
      errors.push_back(float(std::abs(report.gradient_norm / std::sqrt(squares) - 1) / bound));
      for (std::size_t i = 0; i < 3; ++i)
        if (!(errors[i] <= worst[i])) worst[i] = errors[i];
    }
    return worst;
  });
}

TEST_CASE("on a ring, at equal weights, each step has one rank's loss, gradient and norm") {
  for (const std::size_t p : {2, 3, 5})
    for (const OnRanks& got :
         {worst_errors<Zero1Trainer>(p, llama()), worst_errors<FsdpTrainer>(p, gpt2())}) {
      CAPTURE(p);
      REQUIRE(got.error == "");
      for (const Floats& worst : got.results)
        for (const float share : worst) CHECK(share <= 1);
    }
}

TEST_CASE("all ranks have the same weights, those that rank 0 began with") {
  for (const SumOrder order : {SumOrder::ring, SumOrder::pairs}) {
    const OnRanks got = on_ranks(3, [&](const Communicator& ranks) {
      const std::vector<int> ids = tiny_ids();
      Zero1Trainer one(ranks, drawn(llama(), 1 + ranks.rank), options_of(3), ids, order);
      FsdpTrainer other(ranks, drawn(llama(), 1 + ranks.rank), options_of(3), ids, order);
      Floats all = weights_of(ranks, one);
      const Floats more = weights_of(ranks, other);
      one.step();
      const Floats after = weights_of(ranks, one);
      for (const Floats* x : {&more, &after}) all.insert(all.end(), x->begin(), x->end());
      return all;
    });
    REQUIRE(got.error == "");
    CHECK(first_wrong(got, got.results[0]) == "");
    const Floats begun = weights_of(drawn(llama(), 1));
    const std::size_t n = begun.size();
    CHECK(std::equal(begun.begin(), begun.end(), got.results[0].begin()));
    CHECK(std::equal(begun.begin(), begun.end(), got.results[0].begin() + std::ptrdiff_t(n)));
  }
}

}  // namespace t2t::sharded_tests
