// What must be true of the encoder-decoder: PyTorch's numbers, and which token reaches which.
#include "09_language_model/encoder_decoder/encoder_decoder.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <vector>

#include "01_embedding/embedding.hpp"
#include "02_normalization/rms_norm.hpp"
#include "09_language_model/sampling.hpp"
#include "files/npy.hpp"
#include "support/all_close.hpp"
#include "support/hashed_numbers.hpp"
#include "support/lists.hpp"
#include "support/refuses.hpp"

namespace t2t::encoder_decoder_test {

static constexpr EncoderDecoderConfig sizes{.C = 12, .H = 3, .F = 17, .L = 2, .V = 23};

/// As make_encoder_decoder.py makes them.
static AttentionWeights attention(std::uint32_t seed) {
  const auto w = [&](std::uint32_t i) { return numbers(seed + i, 1, 0, sizes.C, sizes.C); };
  return {w(0), w(1), w(2), w(3)};
}
static FeedForwardWeights network(std::uint32_t seed) {
  FeedForwardWeights weights;
  weights.w_up = numbers(seed + 14, 1, 0, sizes.F, sizes.C);
  weights.w_down = numbers(seed + 15, 1, 0, sizes.C, sizes.F);
  return weights;
}
static Tensor<1> gain(std::uint32_t seed) { return numbers(seed, 1, 1, sizes.C); }

static EncoderDecoder model_of_the_fixture() {
  EncoderDecoder model{.config = sizes,
                       .embedding = numbers(1, 1, 0, sizes.V, sizes.C),
                       .encoder = {},
                       .encoder_norm = gain(4),
                       .decoder = {},
                       .decoder_norm = gain(5)};
  for (std::uint32_t l = 0; l < sizes.L; ++l) {
    const std::uint32_t e = 100 * (l + 1), d = 500 + e;
    model.encoder.push_back({gain(e + 2), attention(e + 4), gain(e + 18), network(e)});
    model.decoder.push_back(
        {gain(d + 2), attention(d + 4), gain(d + 22), attention(d + 24), gain(d + 18), network(d)});
  }
  return model;
}

/// Whether row t of both is the same, bit by bit.
static bool equal_rows(const Tensor<2>& a, const Tensor<2>& b, std::size_t t) {
  return std::ranges::equal(row(a, t), row(b, t));
}

TEST_CASE("encoder and decoder give what PyTorch's layers give") {
  const EncoderDecoder model = model_of_the_fixture();
  const Ids source = load_npy_ints(T2T_FIXTURES "/source_ids.npy");
  const Ids target = load_npy_ints(T2T_FIXTURES "/target_ids.npy");
  const Tensor<2> want_encoded = load_npy<2>(T2T_FIXTURES "/encoded.npy");
  const Tensor<2> want = load_npy<2>(T2T_FIXTURES "/translated_logits.npy");
  // As chapter 09's other models: a block keeps K·u of its stream's size, u being 2^-24, and errors
  // of several blocks are of either sign. A decoder block counts as two: it has two attentions.
  const double K =
      4 * std::sqrt(12.0) + 4 * std::sqrt(4.0) + std::sqrt(7.0) + std::sqrt(12.0) + std::sqrt(17.0);
  const Tensor<2> encoded = encode(source, model);
  CHECK(all_close(encoded, want_encoded, std::sqrt(2.0) * K * 0x1p-24 * 4.0));
  const double bound = (std::sqrt(6.0) * K + std::sqrt(12.0)) * 0x1p-24 * 2.4;
  CHECK(all_close(decode(target, encoded, model), want, bound));
}

TEST_CASE("a source token reaches every target token, a target token none before it") {
  Random random(2);
  const EncoderDecoder model = draw_encoder_decoder(sizes, random);
  const Ids source = {3, 1, 4, 1, 5}, target = {0, 7, 9, 2};
  const Tensor<2> encoded = encode(source, model), logits = decode(target, encoded, model);
  for (std::size_t s = 0; s < source.size(); ++s) {
    Ids other = source;
    other[s] = 20;
    const Tensor<2> changed = encode(other, model);
    for (std::size_t t = 0; t < source.size(); ++t) CHECK_FALSE(equal_rows(changed, encoded, t));
    const Tensor<2> answer = decode(target, changed, model);
    for (std::size_t t = 0; t < target.size(); ++t) CHECK_FALSE(equal_rows(answer, logits, t));
  }
  for (std::size_t changed = 0; changed < target.size(); ++changed) {
    Ids other = target;
    other[changed] = 20;
    const Tensor<2> answer = decode(other, encoded, model);
    for (std::size_t t = 0; t < target.size(); ++t)
      CHECK(equal_rows(answer, logits, t) == (t < changed));
  }
}

TEST_CASE("what the norms read is kept in order, and the result is the same") {
  const EncoderDecoder model = model_of_the_fixture();
  const Ids source = {3, 1, 4, 1, 5}, target = {0, 7, 9};
  NormInputs of_source, of_target;
  const Tensor<2> encoded = encode(source, model, &of_source);
  const Tensor<2> logits = decode(target, encoded, model, &of_target);
  CHECK(encoded == encode(source, model));
  CHECK(logits == decode(target, encoded, model));
  REQUIRE(of_source.size() == 2 * sizes.L + 1);
  REQUIRE(of_target.size() == 3 * sizes.L + 1);
  CHECK(of_source[0] == begin_stream(source, model));
  CHECK(of_target[0] == begin_stream(target, model));
  CHECK(rms_norm(of_source.back(), model.encoder_norm, sizes.eps) == encoded);
  CHECK(unembed(rms_norm(of_target.back(), model.decoder_norm, sizes.eps), model.embedding) ==
        logits);
}

TEST_CASE("the greedy answer is the likeliest token after the answer so far, and ends at stop") {
  Random random(5);
  const EncoderDecoder model = draw_encoder_decoder(sizes, random);
  const Ids source = {8, 6, 4};
  const Ids answer = greedy_answer(source, 0, -1, 6, model);
  REQUIRE(answer.size() == 6);
  Ids target = {0};
  for (const int id : answer) {
    const Tensor<2> logits = decode(target, encode(source, model), model);
    CHECK(greedy(row(logits, target.size() - 1)) == id);
    target.push_back(id);
  }
  CHECK(greedy_answer(source, 0, answer[0], 6, model).empty());
  CHECK(greedy_answer(source, 0, -1, 0, model).empty());
}

TEST_CASE("refusals: encoder-decoder") {
  Random random(1);
  EncoderDecoder model = draw_encoder_decoder(sizes, random);
  const Tensor<2> encoded = encode(Ids{1, 2}, model), narrow = xt::ones<float>({2, 5});
  REFUSES(encode(Ids{}, model), "T, the tokens: wanted at least 1, got 0");
  REFUSES(encode(Ids{1, 23}, model), "ids: token 1 is 23, outside [0, 23), the vocabulary");
  REFUSES(decode(Ids{1}, narrow, model), "memory: wanted shape [2, 12], got [2, 5]");
  model.decoder.pop_back();
  REFUSES(decode(Ids{1}, encoded, model),
          "blocks: wanted L = 2 in each stack, got 2 in the encoder and 1 in the "
          "decoder");
  EncoderDecoderConfig odd = sizes;
  odd.H = 5;
  CHECK_THROWS_AS(encode(Ids{1}, draw_encoder_decoder(odd, random)), std::invalid_argument);
}

}  // namespace t2t::encoder_decoder_test
