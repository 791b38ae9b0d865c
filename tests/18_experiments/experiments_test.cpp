// What must be true of experiments: their sides differ in what they say, each gets its own rate,
// and all is repeated exactly.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "18_experiments/try_variant.hpp"
#include "support/lists.hpp"

namespace t2t::experiments_test {

using std::size_t;

static constexpr double infinity = std::numeric_limits<double>::infinity();

TEST_CASE("every experiment has a name of its own and models that can be made") {
  std::set<std::string> names;
  for (const Experiment& experiment : experiments()) {
    CAPTURE(experiment.name);
    CHECK(names.insert(experiment.name).second);
    CHECK(experiment.variants.size() >= 2);
    std::set<std::string> sides;
    for (const Variant& variant : experiment.variants) {
      CHECK_NOTHROW(expect_config(variant.config));
      CHECK(variant.config.T_max >= experiment_T);
      CHECK(sides.insert(variant.name).second);
    }
  }
}

TEST_CASE("sides that should have equally many parameters do, within one in a hundred") {
  for (const Experiment& experiment : experiments()) {
    const double first = double(parameter_count(experiment.variants[0]));
    for (const Variant& variant : experiment.variants) {
      if (!experiment.name.ends_with("networks") && !variant.name.ends_with("as many parameters"))
        continue;
      CAPTURE(variant.name);
      CHECK(std::abs(double(parameter_count(variant)) / first - 1) < 0.01);
    }
  }
}

TEST_CASE("scores are q·k where they are not divided, and divided by the root of D elsewhere") {
  size_t undivided = 0;
  for (const Experiment& experiment : experiments())
    for (const Variant& variant : experiment.variants) {
      CAPTURE(variant.name);
      const size_t D = variant.config.block.D;
      const bool divided = !variant.name.ends_with("not divided");
      CHECK(rule_of(variant.config.block).factor_for(D) ==
            (divided ? 1 / std::sqrt(float(D)) : 1.0f));
      undivided += divided ? 0 : 1;
    }
  CHECK(undivided == 2);
}

TEST_CASE("a model without norms has no gains to count") {
  for (const Experiment& experiment : experiments())
    if (experiment.name == "norms") {
      const size_t with = parameter_count(experiment.variants[0]);
      CHECK(experiment.variants[2].name == "no norms");
      CHECK(with - parameter_count(experiment.variants[2]) == (2 * 4 + 1) * 64);  // (2·L + 1)·C
    }
}

TEST_CASE("by hand: mean, least and largest loss of three seeds") {
  const Spread spread = spread_of({{1, 1, 2.0}, {1, 2, 1.0}, {1, 3, 4.5}});
  CHECK(spread.mean == 2.5);
  CHECK(spread.least == 1);
  CHECK(spread.most == 4.5);
  CHECK(spread_of({{1, 1, 2.0}, {1, 2, infinity}}).mean == infinity);
}

static Experiment small_experiment() {
  const Config config{
      .block = llama_style(8, 2, 1, 12), .L = 1, .V = 256, .T_max = 64, .tied = true};
  return {"small", "?", {{"as it is", config}, {"no numbers", config}}, 3};
}
static Ids text(size_t size) {
  Ids ids;
  for (size_t i = 0; i < size; ++i) ids.push_back(int(97 + i * i % 7));
  return ids;
}

TEST_CASE("the sweep goes on to both sides until it is no better; seeds follow at the best rate" *
          doctest::test_suite("slow")) {
  const Experiment experiment = small_experiment();
  const Ids train = text(1200), held_out = text(200);
  size_t trials = 0;
  const auto count = [&](const Trial&) { ++trials; };
  const Outcome outcome =
      try_variant(experiment, experiment.variants[0], train, held_out, 3, count);
  CHECK(std::ranges::is_sorted(outcome.sweep, {}, &Trial::rate));
  const auto best = std::ranges::min_element(outcome.sweep, {}, &Trial::held_out);
  REQUIRE(outcome.seeds.size() == 3);
  for (size_t i = 0; i < 3; ++i) {
    CHECK(outcome.seeds[i].seed == i + 1);
    CHECK(outcome.seeds[i].rate == best->rate);
  }
  CHECK(outcome.seeds[0].held_out == best->held_out);
  CHECK(outcome.seeds[1].held_out != best->held_out);
  CHECK(trials == outcome.sweep.size() + 2);
  for (const Trial& trial : outcome.sweep) CHECK(trial.seed == 1);
  const Outcome again = try_variant(experiment, experiment.variants[0], train, held_out, 3);
  CHECK(again.seeds[2].held_out == outcome.seeds[2].held_out);
}

TEST_CASE("the gate of ReLU squared is up after training, too, and the network is the square") {
  const auto all = experiments();
  const auto squared = std::ranges::find(all, "squared-networks", &Experiment::name);
  REQUIRE(squared != all.end());
  const Variant& variant = squared->variants[1];
  const Config& config = variant.config;
  Random random(1);
  ModelWeights weights = draw_model(config, random);
  variant.redrawn(weights, config);
  const Ids train = text(400);
  Trainer trainer(Model(config, std::move(weights)), {.B = 2, .T = 16}, train);
  for (int n = 0; n < 3; ++n) trainer.step();
  const FeedForwardWeights& network = trainer.model().weights().blocks[3].feed_forward;
  const Tensor<2>&gate = network.w_gate.floats(), &up = network.w_up.floats();
  CHECK(std::ranges::equal(gate, up));  // the same bits: NaN is not equal
  Random other(1);
  CHECK(!std::ranges::equal(up, draw_model(config, other).blocks[3].feed_forward.w_up.floats()));
  const Tensor<2> x = random.normal<2>({1, config.block.C}, 1);
  const Tensor<2> y = feed_forward(x, network, config.block.activation);
  constexpr double eps = 0x1p-24;  // the rounding of a float
  for (size_t c = 0; c < config.block.C; ++c) {
    double sum = 0, bound = 0;
    for (size_t f = 0; f < config.block.F; ++f) {
      double inner = 0, size = 0;
      for (size_t i = 0; i < config.block.C; ++i) {
        const double term = double(up(f, i)) * x(0, i);
        inner += term, size += std::abs(term);
      }
      const double off = double(config.block.C) * eps * size;  // of a sum of C terms in any order
      const double square = inner > 0 ? inner * inner : 0, down = network.w_down.floats()(c, f);
      sum += square * down;
      bound +=
          (2 * std::abs(inner) * off + off * off +
           double(config.block.F + 3) * eps * (std::abs(inner) + off) * (std::abs(inner) + off)) *
          std::abs(down);
    }
    CHECK(std::abs(y(0, c) - sum) <= bound);
  }
}

TEST_CASE("a run whose numbers are not finite counts as infinitely bad") {
  Experiment experiment = small_experiment();
  experiment.variants[1].redrawn = [](ModelWeights& weights, const Config&) {
    weights.final_norm.gain.fill(std::numeric_limits<float>::quiet_NaN());
  };
  const Outcome outcome = try_variant(experiment, experiment.variants[1], text(1200), text(200), 1);
  for (const Trial& trial : outcome.sweep) CHECK(trial.held_out == infinity);
}

}  // namespace t2t::experiments_test
