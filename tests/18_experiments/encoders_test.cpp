// What must be true of the encoder-decoder's backward pass, of the task to write words backwards,
// and of windows that are classified.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "13_training/along_gradient.hpp"
#include "13_training/cases.hpp"
#include "13_training/differences.hpp"
#include "13_training/trainer/trainer.hpp"
#include "18_experiments/changes/block_changes.hpp"
#include "18_experiments/encoders/decoder_alone.hpp"
#include "18_experiments/encoders/encoder_decoder_backward.hpp"
#include "18_experiments/encoders/reversal.hpp"
#include "18_experiments/encoders/which_chapter.hpp"
#include "support/all_close.hpp"
#include "support/hashed_numbers.hpp"
#include "support/refuses.hpp"

namespace t2t::encoders_test {

using std::size_t;

static AttentionWeights weights_of(size_t C) {
  return {numbers(1, 1, 0, C, C), numbers(2, 1, 0, C, C), numbers(3, 1, 0, C, C),
          numbers(4, 1, 0, C, C)};
}
static AttentionWeights zeros_of(size_t C) {
  return {zeros(C, C), zeros(C, C), zeros(C, C), zeros(C, C)};
}

/// x·wᵀ in float64.
static Doubles product(const Doubles& x, const Doubles& w) {
  Doubles y(x.rows, w.rows);
  for (size_t t = 0; t < x.rows; ++t)
    for (size_t o = 0; o < w.rows; ++o)
      for (size_t c = 0; c < x.cols; ++c) y(t, o) += x(t, c) * w(o, c);
  return y;
}

/// Chapter 04's multi_head_attention in float64, without a mask.
static Doubles attended(const Doubles& x, const Doubles& memory, const Doubles& w_q,
                        const Doubles& w_k, const Doubles& w_v, const Doubles& w_o, size_t H) {
  const Doubles q = product(x, w_q), k = product(memory, w_k), v = product(memory, w_v);
  const size_t T = x.rows, S = memory.rows, C = x.cols, D = C / H;
  Doubles heads(T, C);
  for (size_t h = 0; h < H; ++h)
    for (size_t t = 0; t < T; ++t) {
      std::vector<double> p(S);
      double sum = 0;
      for (size_t s = 0; s < S; ++s) {
        double score = 0;
        for (size_t d = 0; d < D; ++d) score += q(t, h * D + d) * k(s, h * D + d);
        sum += p[s] = std::exp(score / std::sqrt(double(D)));
      }
      for (size_t s = 0; s < S; ++s)
        for (size_t d = 0; d < D; ++d) heads(t, h * D + d) += p[s] / sum * v(s, h * D + d);
    }
  return product(heads, w_o);
}

TEST_CASE("each gradient of cross attention is that of finite differences in float64") {
  constexpr size_t T = 4, S = 7, C = 6, H = 2;
  const AttentionWeights weights = weights_of(C);
  const Tensor<2> x = numbers(5, 2, 0, T, C), memory = numbers(6, 2, 0, S, C);
  const Tensor<2> dout = numbers(7, 2, 0, T, C);
  AttentionWeights gradients = zeros_of(C);
  const CrossGradients d = multi_head_backward(x, memory, weights, H, Mask::none, dout, gradients);

  Doubles x_d(x), memory_d(memory), w_q(weights.w_q), w_k(weights.w_k), w_v(weights.w_v),
      w_o(weights.w_o);
  const auto loss = [&] { return dot(dout, attended(x_d, memory_d, w_q, w_k, w_v, w_o, H)); };
  // Each step back is a product over at most S·C sums; numbers stay below 8.
  const double bound = rounding(4 * S * C, 8);
  CHECK(all_close(d.x, by_differences(x_d, loss), bound));
  CHECK(all_close(d.memory, by_differences(memory_d, loss), bound));
  CHECK(all_close(gradients.w_q, by_differences(w_q, loss), bound));
  CHECK(all_close(gradients.w_k, by_differences(w_k, loss), bound));
  CHECK(all_close(gradients.w_v, by_differences(w_v, loss), bound));
  CHECK(all_close(gradients.w_o, by_differences(w_o, loss), bound));
  REFUSES(multi_head_backward(x, memory, weights, H, Mask::none, zeros(T + 1, C), gradients),
          "dout: wanted shape [4, 6], got [5, 6]");
}

static EncoderDecoder tiny(Activation activation = Activation::gelu) {
  Random random(3);
  EncoderDecoder model = draw_encoder_decoder(
      {.C = 12, .H = 3, .F = 17, .L = 2, .V = letter_tokens, .activation = activation}, random);
  model.embedding *= 2;  // as large as after some training
  return model;
}
static EncoderDecoder gradients_of(const EncoderDecoder& model, const TextPair& pair) {
  EncoderDecoder gradients = zeros_like(model);
  pair_loss(model, pair, 1, &gradients);
  return gradients;
}
static double dot(EncoderDecoder a, EncoderDecoder b) { return dot(tensors_of(a), tensors_of(b)); }
/// The slope of the loss when the weights move by h·way to either side.
static double slope_of(EncoderDecoder way, const EncoderDecoder& model, const TextPair& pair,
                       double h) {
  const auto loss_at = [&](double h) {
    EncoderDecoder moved = model;
    move_along(tensors_of(way), h, tensors_of(moved));
    return pair_loss(moved, pair);
  };
  return (loss_at(h) - loss_at(-h)) / (2 * h);
}

TEST_CASE("the encoder-decoder's loss grows along its gradients, and along random signs") {
  const EncoderDecoder model = tiny();
  const TextPair pair = reversal_of("attention");
  EncoderDecoder gradients = gradients_of(model, pair);
  CHECK(pair_loss(model, pair) > 0);
  for (const ListedTensor& tensor : tensors_of(gradients)) {
    CAPTURE(full_name(tensor.info));
    CHECK(std::ranges::any_of(tensor.numbers, [](float g) { return g != 0; }));
  }
  // The slope is off by the square of the distance times the third derivative, and by the rounding
  // of two losses of about 40 nats, 5e-6, divided by twice the distance times the norm.
  const double square = dot(gradients, gradients), norm = std::sqrt(square);
  const double h = 2e-3 / norm;
  CHECK(std::abs(slope_of(gradients, model, pair, h) / square - 1) < 3e-3);
  Random random(1);
  double squares = 0;
  for (int draw = 0; draw < 4; ++draw) {
    EncoderDecoder signs = zeros_like(model);
    for (const ListedTensor& tensor : tensors_of(signs))
      for (float& sign : tensor.numbers) sign = random.next_uniform() < 0.5 ? 1 : -1;
    const double off = slope_of(signs, model, pair, 3e-5) - dot(signs, gradients);
    squares += off * off;
  }
  CHECK(std::sqrt(squares / 4) < 0.02 * norm);
}

TEST_CASE("the loss is that of the logits, and gradients are added to those before, scaled") {
  const EncoderDecoder model = tiny();
  const TextPair pair = reversal_of("key");
  const Tensor<2> logits = decode(pair.target, encode(pair.source, model), model);
  double want = 0;
  for (size_t t = 0; t < pair.next.size(); ++t) {
    double sum = 0;
    for (size_t v = 0; v < letter_tokens; ++v) sum += std::exp(double(logits(t, v)));
    want += std::log(sum) - double(logits(t, size_t(pair.next[t])));
  }
  CHECK(pair_loss(model, pair) == doctest::Approx(want).epsilon(1e-6));

  const EncoderDecoder once = gradients_of(model, pair);
  EncoderDecoder twice = zeros_like(model);
  for (int i = 0; i < 2; ++i) pair_loss(model, pair, 0.5f, &twice);
  CHECK(all_close(twice.embedding, once.embedding, rounding(24, 32)));
  CHECK(all_close(twice.encoder[0].self.w_q, once.encoder[0].self.w_q, rounding(24, 32)));
}

TEST_CASE("what has no backward pass is refused") {
  const TextPair pair = reversal_of("key");
  REFUSES(pair_loss(tiny(Activation::swiglu), pair),
          "the model to train: wanted networks without a gate, got gated ones");
  EncoderDecoder model = tiny();
  model.decoder[1].network.b_up = zeros(17);
  REFUSES(pair_loss(model, pair), "the model to train: wanted networks without biases");
  REFUSES(pair_loss(tiny(), {{}, {26}, {27}}), "T, the tokens: wanted at least 1, got 0");
}

TEST_CASE("words of a text: those of small letters alone, once each") {
  CHECK(words_of("the key, the value: Keys of k2 and a_b end.", 3, 5) ==
        std::vector<std::string>{"and", "end", "key", "the", "value"});
  CHECK(words_of("", 1, 9).empty());
  const TextPair pair = reversal_of("abz");
  CHECK(pair.source == std::vector<int>{0, 1, 25});
  CHECK(pair.target == std::vector<int>{start_of_word, 25, 1, 0});
  CHECK(pair.next == std::vector<int>{25, 1, 0, end_of_word});
}

TEST_CASE("an encoder-decoder learns to turn words around, in the same steps each time" *
          doctest::test_suite("slow")) {
  const std::vector<std::string> words = {"key", "row", "head", "mask", "text", "norm"};
  std::vector<TextPair> pairs;
  for (const std::string& word : words) pairs.push_back(reversal_of(word));
  const StepOptions options{{1e-2f, 1e-3f, 20, 250}, {.decay = 0}, 1};
  PairTrainer trainer(tiny(), options, pairs, 4, 5), again(tiny(), options, pairs, 4, 5);
  CHECK(share_reversed(trainer.model(), words) == 0);
  for (int n = 0; n < 3; ++n) CHECK(trainer.step().loss == again.step().loss);
  for (int n = 3; n < 250; ++n) trainer.step();
  CHECK(share_reversed(trainer.model(), words) == 1);
  REFUSES(share_reversed(trainer.model(), {}), "words to reverse: wanted at least 1, got 0");
  REFUSES(PairTrainer(tiny(), options, {}, 4, 5), "pairs to learn: wanted at least 1, got 0");
  REFUSES(PairTrainer(tiny(), options, pairs, 0, 5),
          "B, the pairs of a step: wanted at least 1, got 0");
}

TEST_CASE("by hand: word and answer as one text, of which the answer and its end are learned") {
  Batch batch = make_batch(2, 7);
  const TextPair key = reversal_of("key"), ab = reversal_of("ab");
  const std::vector<const TextPair*> pairs = {&key, &ab};
  fill_with_pairs(batch, pairs);
  const int no = not_learned, start = start_of_word, end = end_of_word;
  CHECK(batch.ids == std::vector<int>{10, 4, 24, start, 24, 4, 10, 0, 1, start, 1, 0, 0, 0});
  CHECK(batch.targets == std::vector<int>{no, no, no, 24, 4, 10, end, no, no, 1, 0, end, no, no});
  REFUSES(fill_with_pairs(batch, {pairs.data(), 1}), "pairs of the batch: wanted B, got 1");
  const TextPair mask = reversal_of("mask");
  const std::vector<const TextPair*> longer = {&key, &mask};
  REFUSES(fill_with_pairs(batch, longer), "tokens of a pair: wanted at most T = 7, got 9");
}

TEST_CASE("a decoder alone has the encoder-decoder's sizes, and its stream the same beginning") {
  const EncoderDecoderConfig sizes{.C = 48, .H = 4, .F = 96, .L = 2, .V = letter_tokens};
  Random random(1);
  const Model model = draw_decoder_alone(decoder_alone(sizes, 5, 19), random);
  EncoderDecoder both = draw_encoder_decoder(sizes, random);
  size_t of_both = 0;
  for (const ListedTensor& tensor : tensors_of(both)) of_both += tensor.numbers.size();
  // Beside the table of positions: five blocks where the others have two and two of a half more, a
  // head, and one last norm instead of two.
  CHECK(of_both == 94'080);
  CHECK(parameter_count(model.weights()) - 19 * 48 == of_both + 28 * 48 - 48);
  both.embedding = model.weights().embedding.floats() / std::sqrt(48.0f);
  Tensor<2> x = empty(3, 48);
  embed_tokens(model, std::vector<int>{4, 26, 7}, 0, x);
  CHECK(all_close(x, begin_stream(std::vector<int>{4, 26, 7}, both), rounding(2, 8)));
}

TEST_CASE("a decoder alone learns to turn words around, from the same pairs in the same steps" *
          doctest::test_suite("slow")) {
  const std::vector<std::string> words = {"key", "row", "head", "mask", "text", "norm"};
  std::vector<TextPair> pairs;
  for (const std::string& word : words) pairs.push_back(reversal_of(word));
  const StepOptions options{{1e-2f, 1e-3f, 20, 250}, {.decay = 0}, 1};
  const Config config = decoder_alone(tiny().config, 2, 9);
  const auto drawn = [&] {
    Random random(1);
    return draw_decoder_alone(config, random);
  };
  AloneTrainer trainer(drawn(), options, pairs, 4, 5), again(drawn(), options, pairs, 4, 5);
  const Tensor<2> positions = trainer.model().weights().positions.floats();
  CHECK(share_reversed(trainer.model(), words) == 0);
  for (int n = 0; n < 3; ++n) CHECK(trainer.step().loss == again.step().loss);
  for (int n = 3; n < 250; ++n) trainer.step();
  CHECK(share_reversed(trainer.model(), words) == 1);
  CHECK(all_close(trainer.model().weights().positions.floats(), positions, 0));
  REFUSES(AloneTrainer(drawn(), options, {}, 4, 5), "pairs to learn: wanted at least 1, got 0");
  pairs.push_back(reversal_of("longer"));
  REFUSES(AloneTrainer(drawn(), options, pairs, 4, 5),
          "T, the tokens of a sequence: wanted 1 to T_max = 9, got 13");
}

TEST_CASE("a window's class is asked for behind it, and nothing else is learned") {
  const std::vector<std::vector<int>> texts = {{97, 97, 97, 97, 97}, {98, 98, 98, 98}};
  Batch batch = make_batch(50, 4);
  Random random(1);
  draw_windows(batch, texts, random);
  size_t of_second = 0;
  for (size_t b = 0; b < batch.B; ++b) {
    const int number = batch.targets[b * 4 + 3];
    of_second += size_t(number == 1);
    for (size_t t = 0; t < 3; ++t) {
      CHECK(batch.ids[b * 4 + t] == 97 + number);
      CHECK(batch.targets[b * 4 + t] == not_learned);
    }
    CHECK(batch.ids[b * 4 + 3] == class_token);
  }
  CHECK(of_second > 10);
  CHECK(of_second < 40);
  Batch one = make_batch(1, 4);
  REFUSES(set_window(one, std::vector<int>{97, 97}, 0), "tokens of a window: wanted 3, got 2");
  REFUSES(set_window(batch, std::vector<int>{97, 97, 97}, 0),
          "B of a batch for one window: wanted 1, got 50");
  REFUSES(draw_windows(batch, {}, random), "texts to draw windows from: wanted at least 1, got 0");
  const std::vector<std::vector<int>> shorter = {{97, 97}};
  REFUSES(draw_windows(batch, shorter, random), "tokens of a sequence: wanted at least 3, got 2");
}

TEST_CASE("a model with and without the mask learns to tell two texts apart" *
          doctest::test_suite("slow")) {
  std::vector<std::vector<int>> texts(2);
  for (int i = 0; i < 200; ++i) texts[0].push_back(97 + i % 3), texts[1].push_back(97 + i % 4);
  for (const bool causal : {true, false}) {
    const Config config{
        .block = llama_style(16, 2, 2, 32), .L = 1, .V = 256, .T_max = 12, .tied = true};
    Random random(3), windows(4);
    const TrainingFunctions functions = functions_of({.causal = causal});
    Trainer trainer(Model(config, draw_model(config, random)),
                    {.B = 8, .T = 12, .schedule = {1e-2f, 1e-3f, 5, 80}}, texts[0],
                    {.functions = functions});
    Gradients passes(config, 1, 12, functions);
    Batch batch = make_batch(8, 12);
    for (int n = 0; n < 80; ++n) {
      draw_windows(batch, texts, windows);
      trainer.step_on(batch);
    }
    CHECK(share_recognized(trainer.model(), passes, 12, texts, 10) == 1);
    REFUSES(share_recognized(trainer.model(), passes, 12, {}, 10),
            "windows to recognize: wanted at least 1, got 0");
  }
  CHECK(share_recognized_by_counts(texts, 12, texts, 10) == 1);
}

}  // namespace t2t::encoders_test
