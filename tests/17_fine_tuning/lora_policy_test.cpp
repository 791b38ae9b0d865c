// What must be true of an adapter that learns from weighted tokens.
#include "17_fine_tuning/preferences/lora_policy.hpp"

#include <doctest/doctest.h>

#include <limits>
#include <vector>

#include "10_pretrained/model/tiny_model.hpp"
#include "17_fine_tuning/preferences/weighted_passes.hpp"
#include "shapes.hpp"
#include "support/all_close.hpp"
#include "support/refuses.hpp"

namespace t2t::lora_policy_test {

using std::size_t;
using Bad = std::invalid_argument;

static constexpr size_t B = 2, T = 6;

static Model drawn() {
  const Config config{.block = llama_style(32, 4, 2, 48), .L = 2, .V = 20, .T_max = 16};
  Random random(5);
  return Model(config, draw_model(config, random));
}
static LoraOptions options() {
  return {.rank = 3, .alpha = 6, .B = B, .T = T, .schedule = {0.01f, 0.01f, 0, 100}, .clip = 0};
}
static Batch some_batch() {
  Batch batch = make_batch(B, T);
  for (size_t i = 0; i < B * T; ++i) {
    batch.ids[i] = int(i * i % 20);
    batch.targets[i] = i % 5 == 0 ? not_learned : int((3 * i + 1) % 20);
  }
  return batch;
}
/// One weight for each sequence.
static std::vector<float> weights_of(float first, float second) {
  std::vector<float> weights(B * T, first);
  std::fill(weights.begin() + T, weights.end(), second);
  return weights;
}
/// ln p of all learned targets of a sequence.
static double log_p(const Model& model, const Batch& batch, size_t b) {
  WeightedPasses passes(model.config(), B, T);
  const std::vector<double> all = passes.log_p(model, batch);
  double sum = 0;
  for (size_t t = 0; t < T; ++t)
    if (batch.targets[b * T + t] != not_learned) sum += all[b * T + t];
  return sum;
}

TEST_CASE("with one over their number as all weights, a step is that of the mean loss") {
  const Batch batch = some_batch();
  const float weight = 1 / float(count_learned(batch.targets));
  LoraTrainer trainer(drawn(), options());
  LoraPolicy policy(drawn(), options());
  const StepReport plain = trainer.step_on(batch);
  const StepReport weighted = policy.step_on(batch, weights_of(weight, weight));
  // One rounding of each logit's gradient, which no later sum makes relatively larger.
  CHECK(weighted.gradient_norm == doctest::Approx(plain.gradient_norm).epsilon(1e-6));
  CHECK(weighted.loss == doctest::Approx(plain.loss).epsilon(1e-6));
}

TEST_CASE("tokens of positive weight become likelier, and those of negative weight less likely") {
  const Batch batch = some_batch();
  LoraPolicy policy(drawn(), options());
  const double before[] = {log_p(policy.model(), batch, 0), log_p(policy.model(), batch, 1)};
  for (int n = 0; n < 5; ++n) policy.step_on(batch, weights_of(0.1f, -0.1f));
  CHECK(log_p(policy.model(), batch, 0) > before[0] + 0.01);
  CHECK(log_p(policy.model(), batch, 1) < before[1] - 0.01);
}

TEST_CASE("gradients are linear in the weights: twice the weights, twice the norm; none, none") {
  const Batch batch = some_batch();
  LoraPolicy once(drawn(), options()), twice(drawn(), options()), never(drawn(), options());
  const double norm = once.step_on(batch, weights_of(0.25f, -0.5f)).gradient_norm;
  CHECK(norm > 0);
  CHECK(twice.step_on(batch, weights_of(0.5f, -1)).gradient_norm == 2 * norm);
  CHECK(never.step_on(batch, weights_of(0, 0)).gradient_norm == 0);
}

TEST_CASE("what is not in the adapter stays as it is") {
  LoraPolicy policy(drawn(), options());
  policy.step_on(some_batch(), weights_of(1, -1));
  const Model before = drawn();
  CHECK(all_close(policy.model().weights().embedding.floats(), before.weights().embedding.floats(),
                  0));
}

TEST_CASE("weights of other sizes, and weights that are not finite, are refused") {
  LoraPolicy policy(drawn(), options());
  const Batch batch = some_batch();
  std::vector<float> weights;
  REFUSES(policy.step_on(batch, weights),
          "weights: wanted one for each of the batch's tokens, got 0");
  weights.assign(B * T - 1, 1.0f);
  REFUSES(policy.step_on(batch, weights),
          "weights: wanted one for each of the batch's tokens, got 11");
  weights.assign(B * T, std::numeric_limits<float>::quiet_NaN());
  CHECK_THROWS_AS(policy.step_on(batch, weights), Bad);
}

}  // namespace t2t::lora_policy_test
