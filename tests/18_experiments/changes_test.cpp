// What must be true of what experiments change about blocks, and of hidden tokens.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "03_rope/positions/positions.hpp"
#include "04_causal_attention/biases/biased_attention.hpp"
#include "04_causal_attention/multi_head.hpp"
#include "06_gqa/grouped_query_attention.hpp"
#include "09_language_model/fast/forward.hpp"
#include "09_language_model/language_model.hpp"
#include "09_language_model/loss.hpp"
#include "13_training/along_gradient.hpp"
#include "13_training/backward/norm_backward_rows.hpp"
#include "13_training/cases.hpp"
#include "13_training/trainer/trainer.hpp"
#include "18_experiments/changes/block_changes.hpp"
#include "18_experiments/changes/dead_units.hpp"
#include "18_experiments/changes/masking.hpp"
#include "support/all_close.hpp"
#include "support/hashed_numbers.hpp"
#include "support/refuses.hpp"

namespace t2t::changes_test {

using std::size_t;

// Attention of 2 texts of 11 tokens, 4 heads of 8 in 4 groups, no RoPE, no window.
static constexpr size_t B = 2, T = 11, H = 4, D = 8;
static BlockSettings settings(float score_scale = 0) {
  BlockSettings s = llama_style(32, H, H, 20);
  s.uses_rope = false, s.score_scale = score_scale;
  return s;
}
static Tensor<2> projected(std::uint32_t seed) { return numbers(seed, 2, 0, B * T, H * D); }

/// What the attention makes of q, k and v.
static Tensor<2> heads_of(const BlockChanges& changes, Tensor<2> q, Tensor<2> k, Tensor<2> v,
                          const BlockSettings& s = settings()) {
  Random random(1);
  const BlockWeights weights = draw_block(s, random);
  const Block block(s, weights, 0);
  BatchAttention attention(std::span(&s, 1), B, T, functions_of(changes).attention);
  Tensor<2> heads = empty(B * T, H * D);
  std::vector<Run> runs;
  for (size_t b = 0; b < B; ++b) runs.push_back({b, 0, T});
  attention({block, runs, q, k, v}, heads, {});
  return heads;
}
/// A text's rows, head by head: [H, T, D].
static Tensor<3> of_text(const Tensor<2>& x, size_t b) {
  return split_heads(Tensor<2>(xt::view(x, xt::range(b * T, (b + 1) * T))), H);
}
static const double bound = (8 + 2 * std::sqrt(double(D)) + std::sqrt(double(T))) * 0x1p-24 * 8;

TEST_CASE("ALiBi's scores are chapter 04's with chapter 03's biases, one channel short") {
  const Tensor<2> q = projected(1), k = projected(2), v = projected(3);
  BlockChanges changes;
  changes.slopes = alibi_slopes(H);
  for (const bool divided : {true, false}) {
    CAPTURE(divided);
    const float root = divided ? 1 : std::sqrt(float(D));  // chapter 04's formula divides by it
    const Tensor<2> got = heads_of(changes, q, k, v, settings(divided ? 0 : 1));
    for (size_t b = 0; b < B; ++b) {
      Tensor<3> q_b = of_text(Tensor<2>(root * q), b), k_b = of_text(k, b);
      xt::view(q_b, xt::all(), xt::all(), D - 1) = 0;
      xt::view(k_b, xt::all(), xt::all(), D - 1) = 0;
      const Tensor<3> want =
          biased_attention(q_b, k_b, of_text(v, b), alibi_biases(H, T, T), Mask::causal);
      CHECK(all_close(of_text(got, b), want, divided ? bound : 4 * bound));
    }
  }
}

TEST_CASE("without the causal mask each token sees its whole text, and no other") {
  const Tensor<2> q = projected(1), k = projected(2), v = projected(3);
  BlockChanges changes;
  changes.causal = false;
  const Tensor<2> got = heads_of(changes, q, k, v);
  for (size_t b = 0; b < B; ++b) {
    const auto text = [&](const Tensor<2>& x) { return merge_heads(of_text(x, b)); };
    const Tensor<2> want = grouped_query_attention(text(q), text(k), text(v), H, H, Mask::none);
    CHECK(all_close(text(got), want, bound));
  }
}

TEST_CASE("without residuals a part that adds nothing leaves nothing") {
  Case c = llama();
  ModelWeights weights = c.weights();
  weights.blocks.back().feed_forward.w_down.floats().fill(0);
  const Model model(c.config, std::move(weights));
  BlockChanges changes;
  changes.residuals = false;
  const Batch batch = three_texts(c.config.V);
  const double loss = Gradients(c.config, 3, 13, functions_of(changes)).loss(model, batch);
  // The last stream is 0, and so are all logits.
  CHECK(loss / 39 == doctest::Approx(std::log(double(c.config.V))).epsilon(1e-6));
  CHECK(std::abs(Gradients(c.config, 3, 13).loss(model, batch) / loss - 1) > 0.01);
}

/// Each change alone, for a model of H heads.
static std::vector<BlockChanges> changes_of(size_t heads) {
  std::vector<BlockChanges> all(3);
  all[0].causal = false;
  all[1].residuals = false;
  all[2].slopes = alibi_slopes(heads);
  return all;
}

TEST_CASE("with each change, too, the loss grows along its gradient by the square of its norm") {
  for (Case c : {llama(), gpt2()})
    for (const NormPlace place : {NormPlace::before, NormPlace::after}) {
      c.config.block.norm_place = place;
      const Batch batch = three_texts(c.config.V);
      const std::vector<BlockChanges> all = changes_of(c.config.block.H);
      for (size_t i = 0; i < all.size(); ++i) {
        CAPTURE(c.name);
        CAPTURE(int(place));
        CAPTURE(i);
        Gradients passes(c.config, 3, 13, functions_of(all[i]));
        ModelWeights gradients = zeros_of(c.config);
        const double loss = passes.add(c.model(), batch, 1.0f / 39, gradients);
        CHECK(std::abs(loss / Gradients(c.config, 3, 13).loss(c.model(), batch) - 1) > 1e-3);
        const double slope = slope_along(
            gradients, c, 4e-4, [&](const Model& model) { return passes.loss(model, batch) / 39; });
        CHECK(std::abs(slope - 1) < 2e-3);
        const double off = off_at_random(
            gradients, c, 1e-4, [&](const Model& model) { return passes.loss(model, batch) / 39; });
        CHECK(off < 2e-3);
      }
    }
}

/// The same model without norms.
static Model without_norms(Config config, ModelWeights weights) {
  take_norms_away(config, weights);
  return Model(config, std::move(weights));
}

TEST_CASE("where norms are taken away, each gives back what it reads, and its gradient as well") {
  const Case c = llama();
  const Model model = without_norms(c.config, c.weights());
  const BlockSettings& s = model.config().block;
  const Tensor<2> x = numbers(1, 100, 0, T, s.C), dy = numbers(2, 3, 0, T, s.C);
  const auto expect_nothing_done = [&](const NormWeights& weights) {
    Tensor<2> y = empty(T, s.C), dx = xt::zeros<float>({T, s.C});
    norm_rows(x, weights, s.norm, s.eps, y);
    CHECK(all_close(y, x, 0));
    NormWeights gradients{xt::zeros<float>({s.C}), {}};
    Tensor<1> scratch = empty(2 * T);
    add_norm_backward(x, weights, s.norm, s.eps, dy, dx, gradients, row(scratch));
    CHECK(all_close(dx, dy, 3 * 0x1p-22));
  };
  for (const BlockWeights& block : model.weights().blocks) {
    expect_nothing_done(block.attention_norm);
    expect_nothing_done(block.feed_forward_norm);
  }
  expect_nothing_done(model.weights().final_norm);
}

TEST_CASE("without norms, too, the loss grows along its gradient by the square of its norm") {
  const Case c = llama();
  const Batch batch = three_texts(c.config.V);
  Gradients passes(c.config, 3, 13);
  ModelWeights gradients = zeros_of(c.config);
  const double loss = passes.add(without_norms(c.config, c.weights()), batch, 1.0f / 39, gradients);
  CHECK(std::abs(loss / passes.loss(c.model(), batch) - 1) > 1e-3);
  const auto loss_of = [&](const Model& model) {
    return passes.loss(without_norms(model.config(), model.weights()), batch) / 39;
  };
  CHECK(std::abs(slope_along(gradients, c, 4e-4, loss_of) - 1) < 2e-3);
  CHECK(off_at_random(gradients, c, 1e-4, loss_of) < 2e-3);
}

TEST_CASE("training leaves the gains of norms that were taken away as they are") {
  const Case c = llama();
  const Ids ids = letters();
  Trainer trainer(without_norms(c.config, c.weights()),
                  {.B = 4, .T = 13, .schedule = {0.01f, 0.01f, 1, 200}}, ids);
  for (int i = 0; i < 5; ++i) trainer.step();
  for (const float gain : trainer.model().weights().final_norm.gain) CHECK(gain == 0x1p30f);
  for (const BlockWeights& block : trainer.model().weights().blocks)
    for (const NormWeights* norm : {&block.attention_norm, &block.feed_forward_norm})
      for (const float gain : norm->gain) CHECK(gain == 0x1p30f);
}

TEST_CASE("norms that cannot be taken away are refused") {
  Case c = gpt2();
  ModelWeights weights = c.weights();
  REFUSES(take_norms_away(c.config, weights),
          "norms to take away: wanted RMSNorms, alike in all layers");
  c = mixed(), weights = c.weights();
  REFUSES(take_norms_away(c.config, weights),
          "norms to take away: wanted RMSNorms, alike in all layers");
}

TEST_CASE("a channel that ALiBi takes gets no gradient from its projection") {
  const Case c = gpt2();
  const size_t width = c.config.block.D, C = c.config.block.C;
  Gradients passes(c.config, 3, 13, functions_of(changes_of(c.config.block.H)[2]));
  ModelWeights gradients = zeros_of(c.config);
  passes.add(c.model(), three_texts(c.config.V), 1, gradients);
  for (const BlockWeights& block : gradients.blocks)
    for (size_t row = 0; row < c.config.block.H * width; ++row)
      for (const Weight* w : {&block.w_q, &block.w_k})
        for (size_t i = 0; i < C; ++i)
          CHECK((w->floats()(row, i) == 0) == (row % width == width - 1));
}

TEST_CASE("dead units: those that are 0 for every token of a text, in whichever window") {
  Case c = llama();
  const size_t F = c.config.block.F, L = c.config.L;
  const auto dead_of = [&](ModelWeights weights, std::span<const int> ids) {
    return count_dead_units(Model(c.config, std::move(weights)), ids, 13);
  };
  Ids ids = three_texts(c.config.V).ids;
  ids.resize(32);                         // the last window is shorter
  CHECK(dead_of(c.weights(), ids) == 0);  // SwiGLU

  c.config.block.activation = Activation::relu;
  const size_t before = dead_of(c.weights(), ids);
  ModelWeights weights = c.weights();
  for (const size_t f : {size_t(0), F - 1})
    xt::view(weights.blocks[L - 1].feed_forward.w_up.floats(), f, xt::all()) = 0;
  const size_t after = dead_of(weights, ids);
  CHECK(after >= std::max<size_t>(before, 2));
  CHECK(after <= before + 2);
  for (BlockWeights& block : weights.blocks) block.feed_forward.w_up.floats().fill(0);
  CHECK(dead_of(weights, ids) == L * F);

  // A unit that one token uses is not dead: those of all tokens are those that each token has.
  const auto formula = [&](std::span<const int> text, std::vector<char>& used) {
    const Model model = c.model();
    ModelState state(c.config, text.size());
    Tensor<1> logits = empty(c.config.V);
    forward(model, state, text, row(logits), [&](Part part, size_t layer, ConstMatrix up) {
      if (part != Part::up) return;
      for (size_t t = 0; t < up.rows; ++t)
        for (size_t f = 0; f < F; ++f)
          if (up.row(t)[f] > 0) used[layer * F + f] = 1;
    });
  };
  std::vector<char> used(L * F, 0);
  for (size_t first = 0; first < 32; first += 13)
    formula(std::span(ids).subspan(first, std::min<size_t>(13, 32 - first)), used);
  CHECK(before == size_t(std::ranges::count(used, 0)));
}

TEST_CASE("changes that do not fit are refused") {
  const Tensor<2> q = projected(1), k = projected(2), v = projected(3);
  BlockChanges changes;
  changes.slopes = alibi_slopes(3);
  REFUSES(heads_of(changes, q, k, v), "slopes: wanted shape [4], got [3]");
  Tensor<2> narrow = empty(B * T, D);
  changes.slopes = alibi_slopes(H);
  REFUSES(functions_of(changes).attention.forward(settings(), narrow, narrow),
          "q: wanted shape [22, 32], got [22, 8]");
}

TEST_CASE("hidden tokens: a share of them, learned as themselves; all others are not learned") {
  const size_t texts = 50, length = 200;
  Batch batch = make_batch(texts, length);
  for (size_t i = 0; i < batch.ids.size(); ++i)
    batch.ids[i] = int(1 + i % 250), batch.targets[i] = i % 10 == 9 ? not_learned : 7;
  const Batch before = batch;
  hide_tokens(batch, 0.15f, 5);
  size_t hidden = 0;
  for (size_t i = 0; i < batch.ids.size(); ++i) {
    if (batch.targets[i] == not_learned) {
      CHECK(batch.ids[i] == before.ids[i]);
      continue;
    }
    ++hidden;
    CHECK(batch.ids[i] == hidden_token);
    CHECK(batch.targets[i] == before.ids[i]);
    CHECK(i % 10 != 9);
  }
  // Of 9,000 tokens; five deviations of what chance takes.
  CHECK(std::abs(double(hidden) - 0.15 * 9000) < 5 * std::sqrt(9000 * 0.15 * 0.85));
  Batch again = before, other = before, whole = before;
  hide_tokens(again, 0.15f, 5), hide_tokens(other, 0.15f, 6), hide_tokens(whole, 1, 5);
  CHECK(again.ids == batch.ids);
  CHECK(other.ids != batch.ids);
  CHECK(count_learned(whole.targets) == 9000);
  REFUSES(hide_tokens(batch, 0, 1), "share of hidden tokens: wanted above 0 and at most 1, got 0");
  REFUSES(hide_tokens(batch, NAN, 1),
          "share of hidden tokens: wanted above 0 and at most 1, got nan");
}

static TrainingOptions filling_in(size_t parts = 1) {
  return {.B = 4, .T = 13, .parts = parts, .schedule = {5e-3f, 5e-3f, 1, 200}};
}
static TrainingHooks with_hidden_tokens() {
  BlockChanges changes;
  changes.causal = false;
  return {.prepare = [](Batch& batch, std::uint64_t seed) { hide_tokens(batch, 0.2f, seed); },
          .functions = functions_of(changes)};
}

TEST_CASE("a model learns to fill in what is hidden in a text that it knows") {
  const Ids ids = letters();
  const Case c = llama();
  Trainer trainer(c.model(), filling_in(), ids, with_hidden_tokens()),
      again(c.model(), filling_in(), ids, with_hidden_tokens());
  const double before = trainer.loss_of(ids);
  CHECK(trainer.loss_of(ids) == before);  // the same tokens are hidden each time
  CHECK(again.step().loss == trainer.step().loss);
  const double first = trainer.step().loss;
  for (int i = 0; i < 100; ++i) trainer.step();
  CHECK(trainer.step().loss < 0.5 * first);
  CHECK(trainer.loss_of(ids) < 0.5 * before);
  REFUSES(Trainer(c.model(), filling_in(2), ids, with_hidden_tokens()),
          "parts of a batch that is prepared: wanted 1, got 2");
}

}  // namespace t2t::changes_test
