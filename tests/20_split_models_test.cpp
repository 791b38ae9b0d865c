// Chapter 20: a model that is divided among ranks computes the logits of one rank.
#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "09_language_model/cases.hpp"
#include "19_ranks/on_ranks.hpp"
#include "20_split_models/tensor_parallel/parallel_state.hpp"
#include "20_split_models/tensor_parallel/shard_weights.hpp"

namespace t2t::split_tests {

using Floats = std::vector<float>;
constexpr std::size_t S = 16;

/// The tokens of all cases: five, one, and then two more with the logits of both.
static const Ids first_ids = {3, 20, 19, 1, 40}, last_ids = {21, 2, 7};

/// The logits of the fifth token, of the sixth, and of the last two.
static Floats logits_of(const Model& model, StateOptions options) {
  ModelState state(model.config(), S, std::move(options));
  const std::size_t V = model.config().V;
  Tensor<1> one = empty(V);
  Tensor<2> both = empty(2, V);
  Floats all;
  forward(model, state, first_ids, row(one));
  all.insert(all.end(), one.begin(), one.end());
  forward(model, state, std::span(last_ids).first(1), row(one));
  all.insert(all.end(), one.begin(), one.end());
  forward_all(model, state, std::span(last_ids).subspan(1), both);
  all.insert(all.end(), both.begin(), both.end());
  return all;
}

static OnRanks divided_logits(std::size_t p, const Config& whole, const ModelWeights& weights,
                              const StateOptions& options = {}) {
  return on_ranks(p, [&](const Communicator& ranks) {
    const Shard shard = {ranks.rank, ranks.size};
    const Model model(config_of(whole, shard), shard_of(weights, whole, shard));
    return logits_of(model, parallel_options(ranks, options));
  });
}

/// The largest difference, as a share of the bound; a NaN counts as 99. One rank and many are each
/// within chapter 09's bound of the exact logits. Many add p − 1 terms more in each of the sums.
static double error_of(const OnRanks& got, const Floats& want, const Case& c, std::size_t p) {
  const double joins = std::sqrt(2 * double(c.config.L) * double(p - 1)) * 0x1p-24 * c.largest;
  const double bound = 2 * c.bound(c.largest) + joins;
  double worst = 0;
  for (const Floats& logits : got.results)
    for (std::size_t i = 0; i < want.size(); ++i) {
      const double share = std::abs(double(logits[i]) - double(want[i])) / bound;
      worst = std::isnan(share) ? 99 : std::max(worst, share);
    }
  return worst;
}

static Case sized(Case c, std::size_t H, std::size_t G) {
  c.config.block.H = H, c.config.block.G = G;
  for (BlockSettings& settings : c.config.layers) settings.H = H, settings.G = G;
  return c;
}
/// Qwen's biases and norms of heads, a tied table, and Gemma's norm of what is added.
static Case others() {
  Case c = sized(llama(), 9, 3);
  c.config.tied = true;
  c.config.embedding_scale = 3;
  c.config.logit_cap = 5;
  c.config.block.biases = Biases::qkv;
  c.config.block.head_norms = true;
  c.config.block.norm_place = NormPlace::both;
  c.largest = 5;
  return c;
}
static Case post_norm() {
  Case c = llama();
  c.config.block.norm_place = NormPlace::after;
  return c;
}

TEST_CASE("the logits are one rank's within the bound, and the same bits on each rank") {
  // 6 query heads and 2 key heads; 9 and 3; 10 and 2, of which a rank of 4 has heads 2 to 4; GPT-2,
  // whose biases are added to sums over ranks.
  const Case cases[] = {llama(),
                        sized(llama(), 9, 3),
                        sized(llama(), 10, 2),
                        mixed(),
                        sized(mixed(), 8, 8),
                        others(),
                        post_norm(),
                        gpt2()};
  for (const Case& c : cases) {
    const ModelWeights weights = c.weights();
    const Floats want = logits_of(c.model(), {});
    for (std::size_t p = 1; p <= std::min(most_ranks, c.config.block.H); ++p) {
      CAPTURE(c.name);
      CAPTURE(p);
      const OnRanks got = divided_logits(p, c.config, weights);
      REQUIRE(got.error == "");
      CHECK(first_wrong(got, got.results[0]) == "");
      CHECK(error_of(got, want, c, p) <= 1);
      if (p == 1) CHECK((got.results[0] == want));
    }
  }
}

TEST_CASE("chunks of two rows, several sequences' worth of sums, give the same logits") {
  const Case c = llama();
  const ModelWeights weights = c.weights();
  const Floats want = logits_of(c.model(), {.chunk = 2});
  for (const std::size_t p : {2, 3}) {
    const OnRanks got = divided_logits(p, c.config, weights, {.chunk = 2});
    REQUIRE(got.error == "");
    CHECK(error_of(got, want, c, p) <= 1);
  }
}

TEST_CASE("by hand: what a token of SmolLM2-135M costs on two ranks") {
  const PassCost cost = pass_cost(preset("smollm2-135m"), 1, 1, 2, 0);
  CHECK(cost.embedding == Sent{2, 2 * 288 * 4});
  CHECK(cost.attention == Sent{60, 60 * 288 * 4});
  CHECK(cost.feed_forward == Sent{60, 60 * 288 * 4});
  CHECK(cost.logits == Sent{1, 24'576 * 4});
}

TEST_CASE("what a pass sends is the formula's, on each rank") {
  const Case c = sized(llama(), 9, 3);
  const ModelWeights weights = c.weights();
  for (std::size_t p = 1; p <= most_ranks; ++p) {
    const OnRanks got = on_ranks(p, [&](const Communicator& ranks) -> Floats {
      const Shard shard = {ranks.rank, ranks.size};
      const Model model(config_of(c.config, shard), shard_of(weights, c.config, shard));
      ModelState state(model.config(), S, parallel_options(ranks));
      Tensor<2> logits = empty(2, c.config.V);
      const MoreTokens more = {0, first_ids, 2};
      const Sent before = sent();
      forward(model, state, {&more, 1}, logits);
      const Sent now = sent() - before;
      return {float(now.messages), float(now.bytes)};
    });
    REQUIRE(got.error == "");
    for (std::size_t r = 0; r < p; ++r) {
      CAPTURE(p);
      CAPTURE(r);
      const Sent want = pass_cost(c.config, first_ids.size(), 2, p, r).together();
      CHECK(got.results[r] == Floats{float(want.messages), float(want.bytes)});
    }
  }
}

}  // namespace t2t::split_tests
