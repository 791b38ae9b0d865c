// What must be true of a model past its trained length: scaled RoPE, and perplexity by position.
#include <doctest/doctest.h>

#include <cmath>
#include <string>

#include "03_rope/scaling/rope_scaling.hpp"
#include "09_language_model/language_model.hpp"
#include "09_language_model/loss.hpp"
#include "10_pretrained/check/perplexity.hpp"
#include "10_pretrained/model/long_context.hpp"
#include "10_pretrained/model/tiny_model.hpp"
#include "support/all_close.hpp"

namespace t2t::long_test {

static Config small_config() {
  return {.block = {.C = 24, .H = 2, .G = 1, .D = 12, .F = 20},
          .L = 1,
          .V = 31,
          .T_max = 16,
          .tied = true};
}
static Model small_model(const Config& config) {
  Random random(6);
  ModelWeights weights = draw_model(config, random);
  weights.embedding.floats() *= 40;  // so that predictions differ from token to token
  return Model(config, std::move(weights));
}
static std::vector<int> some_ids(std::size_t T) {
  std::vector<int> ids;
  for (std::size_t t = 0; t < T; ++t) ids.push_back(int((t * t * 5 + t + 3) % 31));
  return ids;
}

TEST_CASE(
    "each scaling gives the frequencies of chapter 03, and a longest text of factor · T_max") {
  const Config config = small_config();
  const Frequencies plain = rope_frequencies(12, 10000);
  const std::size_t T = config.T_max;
  const std::pair<std::string, Frequencies> wanted[] = {
      {"none=2.5", {}},
      {"linear=2.5", linear_scaling(plain, 2.5)},
      {"ntk=2.5", ntk_scaling(12, 10000, 2.5)},
      {"llama3=2.5", llama3_scaling(plain, {.factor = 2.5, .trained = T})},
      {"yarn=2.5", yarn_scaling(12, 10000, {.factor = 2.5, .trained = T})}};
  for (const auto& [scaling, frequencies] : wanted) {
    const std::string& text = scaling;
    CAPTURE(text);
    const Model model = with_long_context(small_model(config), parse_long_context(text));
    CHECK(model.config().T_max == 40);
    CHECK(model.config().block.frequencies == frequencies);
  }
}

TEST_CASE("YaRN: the scores are those of q and k both rotated with its magnitude") {
  for (const bool head_norms : {false, true}) {
    Config config = small_config();
    config.block.head_norms = head_norms;
    const Model plain = small_model(config);
    const Model yarn = with_long_context(small_model(config), {RopeScaling::yarn, 4});
    const float m = yarn_magnitude(4);
    const BlockWeights &a = plain.weights().blocks[0], &b = yarn.weights().blocks[0];
    // A score is linear in q: m² times q is what m times each of q and k make of it.
    const Tensor<2> want_q = a.w_q.floats() * (head_norms ? 1.0f : m * m);
    CHECK(all_close(b.w_q.floats(), want_q, 1e-6));
    CHECK(all_close(b.w_k.floats(), a.w_k.floats(), 0));
    if (head_norms) {
      const Tensor<1> want_gain = a.q_norm.gain * (m * m);
      CHECK(all_close(b.q_norm.gain, want_gain, 1e-6));
      CHECK(all_close(b.k_norm.gain, a.k_norm.gain, 0));
    }
  }
}

TEST_CASE("YaRN: where the norms of heads have biases, these make q larger too") {
  Config config = small_config();
  config.block.norm = Norm::layer, config.block.head_norms = true;
  Model plain = small_model(config);
  plain.change_weights([](ModelWeights& weights) {
    for (BlockWeights& block : weights.blocks) block.q_norm.bias += 0.5f;
  });
  const Tensor<1> bias = plain.weights().blocks[0].q_norm.bias;
  const Model yarn = with_long_context(std::move(plain), {RopeScaling::yarn, 4});
  const Tensor<1> want = bias * (yarn_magnitude(4) * yarn_magnitude(4));
  CHECK(all_close(yarn.weights().blocks[0].q_norm.bias, want, 1e-6));
}

TEST_CASE("a scaling of unknown name or factor is refused") {
  for (const char* text : {"", "yarn", "yarn=", "yarn=0.5", "yarn=nan", "yarn=2x", "yarn= 2",
                           "yarn=0x2", "sinus=2", "yarn=2000", "=2"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(parse_long_context(text), std::invalid_argument);
  }
  Config scaled = small_config();
  scaled.block.frequencies = rope_frequencies(12, 10000);
  CHECK_THROWS_AS(with_long_context(small_model(scaled), {RopeScaling::linear, 2}),
                  std::invalid_argument);
  const Model longer = with_long_context(small_model(scaled), {RopeScaling::none, 2});
  CHECK(longer.config().block.frequencies == scaled.block.frequencies);
}

TEST_CASE("perplexity by position: the buckets of a text are parts of one loss") {
  const Model model = small_model(small_config());
  const std::vector<int> ids = some_ids(14);
  const Tensor<2> logits = language_model(ids, model);  // [14, V]
  const auto buckets = perplexity_by_position(ids, model, 5);
  CHECK(buckets.size() == 3);
  for (const AtPositions& bucket : buckets) {
    CAPTURE(bucket.from);
    // Token t is predicted by row t − 1 of the whole text's logits; nothing predicts token 0.
    const std::size_t first = bucket.from == 0 ? 0 : bucket.from - 1, rows = bucket.to - first;
    const Tensor<2> part = xt::view(logits, xt::range(first, bucket.to), xt::all());
    const double loss = next_token_loss(part, std::span(ids).subspan(first, rows));
    CHECK(bucket.perplexity == doctest::Approx(std::exp(loss)).epsilon(1e-5));
  }
  CHECK(buckets.back().to == 14);
}

TEST_CASE("perplexity by position: a bucket read alone is a window of the plain perplexity") {
  const Model model = small_model(small_config());
  const std::vector<int> ids = some_ids(23);  // more than T_max: each bucket begins anew
  const auto buckets = perplexity_by_position(ids, model, 11, Before::own_bucket);
  CHECK(buckets.size() == 2);  // the last token alone has nothing before it
  for (const AtPositions& bucket : buckets) {
    const std::span<const int> part = std::span(ids).subspan(bucket.from, bucket.to - bucket.from);
    CHECK(bucket.perplexity ==
          doctest::Approx(perplexity_of(part, model, 11).perplexity).epsilon(1e-5));
  }
  CHECK_THROWS_AS(perplexity_by_position(ids, model, 11), std::invalid_argument);
  CHECK_THROWS_AS(perplexity_by_position(ids, model, 17, Before::own_bucket),
                  std::invalid_argument);
  CHECK_THROWS_AS(perplexity_by_position(ids, model, 1, Before::own_bucket), std::invalid_argument);
}

}  // namespace t2t::long_test
