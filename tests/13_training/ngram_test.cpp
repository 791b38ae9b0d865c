// What must be true of the n-gram model that training is compared with.
#include "13_training/text/ngram.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "files/npy.hpp"
#include "random.hpp"
#include "support/all_close.hpp"
#include "support/lists.hpp"
#include "support/refuses.hpp"

namespace t2t::ngram_test {

// By hand, values of a few operations in double.
static doctest::Approx about(double value) { return doctest::Approx(value).epsilon(1e-14); }

TEST_CASE("by hand: pairs of six tokens") {
  // The pairs are 01 and 10, twice each, and 02 once. None has a count of 3, so the discounts are
  // fixed: 0.5 of a count of 1, 1 of a count of 2.
  const Ids text = {0, 1, 0, 1, 0, 2};
  const NgramModel model(text, 3, 2);
  // Each token was seen behind one other, so the shorter context gives each (1 − 0.5)/3, and a
  // third of the share 3·0.5/3.
  for (const int next : {0, 1, 2}) CHECK(model.probability({}, next) == about(1 / 3.0));
  // Behind 0 came 1 twice and 2 once: the share is (1 + 0.5)/3.
  CHECK(model.probability(Ids{0}, 0) == about(1 / 6.0));
  CHECK(model.probability(Ids{0}, 1) == about((2 - 1) / 3.0 + 1 / 6.0));
  CHECK(model.probability(Ids{0}, 2) == about((1 - 0.5) / 3 + 1 / 6.0));
  // Behind 1 came 0 twice: the share is 1/2. Behind 2 nothing came.
  CHECK(model.probability(Ids{1}, 0) == about((2 - 1) / 2.0 + 1 / 6.0));
  CHECK(model.probability(Ids{1}, 1) == about(1 / 6.0));
  CHECK(model.probability(Ids{2}, 1) == about(1 / 3.0));
  // 0 is not predicted; 1 has 1/2, 0 has 2/3 and 2 has 1/3, of which the product is 1/9.
  CHECK(ngram_loss(model, Ids{0, 1, 0, 2}) == about(std::log(9) / 3));
}

TEST_CASE("by hand: the three discounts of single tokens") {
  // Four tokens have a count of 1, two of 2, one of 3 and one of 4, and token 8 has none. So y is
  // 4/(4 + 2·2) = 1/2, D1 = 1 − 2·y·2/4 = 1/2, D2 = 2 − 3·y·1/2 = 5/4, D3 = 3 − 4·y·1/1 = 1.
  const Ids text = {0, 1, 2, 3, 4, 4, 5, 5, 6, 6, 6, 7, 7, 7, 7};
  const NgramModel model(text, 9, 1);
  const double rest = (4 * 0.5 + 2 * 1.25 + 2 * 1) / 15 / 9;
  CHECK(model.probability({}, 8) == about(rest));
  CHECK(model.probability({}, 3) == about(0.5 / 15 + rest));
  CHECK(model.probability({}, 4) == about(0.75 / 15 + rest));
  CHECK(model.probability({}, 6) == about(2 / 15.0 + rest));
  CHECK(model.probability({}, 7) == about(3 / 15.0 + rest));
}

TEST_CASE("by hand: where a discount would not be above 0, they are 0.5, 1 and 1.5") {
  // One count of 1, one of 2, two of 3, one of 4: y is 1/3, and D2 would be 2 − 3·y·2/1 = 0.
  const Ids text = {0, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 4};
  const NgramModel model(text, 6, 1);
  const double rest = (0.5 + 1 + 3 * 1.5) / 13 / 6;
  CHECK(model.probability({}, 0) == about(0.5 / 13 + rest));
  CHECK(model.probability({}, 1) == about(1 / 13.0 + rest));
  CHECK(model.probability({}, 4) == about(2.5 / 13 + rest));
  CHECK(model.probability({}, 5) == about(rest));
}

TEST_CASE("by hand: a text's first token was seen before the second one") {
  // 1 came behind 0 and behind 2, and 2 behind 1: counts of 2 and 1, with a share of (1 + 0.5)/3.
  const NgramModel model(Ids{0, 1, 2, 1}, 3, 3);
  CHECK(model.probability({}, 0) == about(1 / 6.0));
  CHECK(model.probability({}, 1) == about((2 - 1) / 3.0 + 1 / 6.0));
  CHECK(model.probability({}, 2) == about((1 - 0.5) / 3 + 1 / 6.0));
}

TEST_CASE("by hand: one token alone") {
  // Its count of 1 is discounted by 0.5, and four tokens share what that leaves.
  for (const std::size_t order : {1, 2, 5}) {
    const NgramModel model(Ids{2}, 4, order);
    CHECK(model.probability({}, 2) == about(0.625));
    CHECK(model.probability(Ids{2, 2}, 3) == about(0.125));
  }
}

TEST_CASE("what was seen behind many others is likelier behind a new one") {
  // 1 comes often, but behind 0 only; 2 comes behind 3, 4, 5 and 6.
  Ids text;
  for (int i = 0; i < 8; ++i) text.insert(text.end(), {0, 1, 3 + i % 4, 2});
  const NgramModel model(text, 8, 2);
  CHECK(model.probability(Ids{7}, 2) > 2 * model.probability(Ids{7}, 1));
}

/// A text in which each token depends on the two before it.
static Ids some_text(std::size_t size, int V) {
  Random random(1);
  Ids ids = {1, 2};
  while (ids.size() < size) {
    const int likely = (3 * ids[ids.size() - 1] + 5 * ids[ids.size() - 2] + 1) % V;
    ids.push_back(random.next_uniform() < 0.7 ? likely : int(random.next_uniform() * V));
  }
  return ids;
}

TEST_CASE("probabilities are above 0 and sum to 1, for contexts that were seen and for others") {
  // Tokens 17 and 18 are in no text.
  constexpr int V = 19;
  const Ids text = some_text(3000, 17);
  for (const std::size_t order : {1, 2, 3, 5, 9}) {
    const NgramModel model(text, V, order);
    for (std::size_t t = 0; t < 60; ++t) {
      Ids context(text.begin(), text.begin() + long(t));
      if (t % 3 == 2) context.back() = (context.back() + int(t)) % V;
      if (t % 5 == 4) context[t / 2] = -1;
      double sum = 0, least = 1;
      for (int next = 0; next < V; ++next) {
        const double p = model.probability(context, next);
        sum += p;
        least = std::min(least, p);
      }
      CAPTURE(order);
      CAPTURE(t);
      CHECK(least > 0);
      CHECK(std::abs(sum - 1) <= 1e-12 * V);
    }
  }
}

TEST_CASE("the last order - 1 tokens of a context count; one that is new is passed over") {
  const Ids text = some_text(500, 17);
  const NgramModel model(text, 19, 3);
  for (std::size_t t = 2; t < 40; ++t)
    for (int next = 0; next < 19; ++next) {
      const Ids two(text.begin() + long(t) - 2, text.begin() + long(t)), one = {two[1]};
      const Ids five = {int(t) % 17, 18, int(t) % 5, two[0], two[1]}, newly = {18, two[1]};
      CHECK(model.probability(five, next) == model.probability(two, next));
      CHECK(model.probability(newly, next) == model.probability(one, next));
      CHECK(model.probability(Ids{two[0], 18}, next) == model.probability({}, next));
    }
}

TEST_CASE("longer sequences predict a text with such structure better, up to its order") {
  constexpr int V = 17;
  const Ids all = some_text(6000, V);
  const std::span<const int> train = std::span(all).first(5000), rest = std::span(all).last(1000);
  const auto loss = [&](std::size_t order) {
    return ngram_loss(NgramModel(train, V, order), rest);
  };
  // One token alone says nothing of the next one here; two do.
  CHECK(std::abs(loss(1) - std::log(V)) < 0.05);
  CHECK(std::abs(loss(2) - std::log(V)) < 0.05);
  // Its entropy: 0.3 of the tokens are drawn evenly, one of them the likely one.
  const double likely = 0.7 + 0.3 / V, other = 0.3 / V;
  const double entropy = -likely * std::log(likely) - (V - 1) * other * std::log(other);
  CHECK(loss(3) < 1.15 * entropy);
  CHECK(loss(3) > 0.9 * entropy);
  CHECK(loss(5) < 1.25 * entropy);
}

TEST_CASE("a text that repeats itself is predicted well by sequences that are long enough") {
  // In 2 of 7 places, behind 1 2, the token before them tells whether 3 or 4 follows.
  Ids text;
  for (int i = 0; i < 100; ++i) text.insert(text.end(), {0, 1, 2, 3, 1, 2, 4});
  const auto loss = [&](std::size_t order) { return ngram_loss(NgramModel(text, 5, order), text); };
  const double either = 2 / 7.0 * std::log(2);
  CHECK(loss(1) > std::log(4));
  for (const std::size_t order : {2, 3}) {
    CHECK(loss(order) > either);
    CHECK(loss(order) < 1.1 * either);
  }
  for (const std::size_t order : {4, 5, 6}) CHECK(loss(order) < 0.1 * either);
}

TEST_CASE("losses and probabilities equal those of a model of dictionaries, for orders 1 to 5") {
  const Ids ids = load_npy_ints(T2T_FIXTURES "/ngram_ids.npy");
  const Tensor<1> want_losses = load_npy<1>(T2T_FIXTURES "/ngram_losses.npy");  // [5]
  const Tensor<2> want = load_npy<2>(T2T_FIXTURES "/ngram_probabilities.npy");  // [5, 60]
  const std::span<const int> train = std::span(ids).first(2000),
                             rest = std::span(ids).subspan(2000);
  Tensor<1> losses = empty(5);
  Tensor<2> got = empty(5, 60);
  for (std::size_t order = 1; order <= 5; ++order) {
    const NgramModel model(train, 17, order);
    losses(order - 1) = float(ngram_loss(model, rest));
    for (std::size_t t = 0; t < 60; ++t)
      got(order - 1, t) = float(model.probability(rest.first(t), rest[t]));
  }
  // Both sides are rounded to floats: a probability is at most 1, a loss at most 4.
  CHECK(all_close(got, want, 0x1p-24));
  CHECK(all_close(losses, want_losses, 0x1p-22));
}

TEST_CASE("what is refused") {
  const Ids text = {0, 1, 2};
  REFUSES(NgramModel(text, 3, 0), "order, the tokens of a sequence: wanted at least 1, got 0");
  REFUSES(NgramModel(text, 0), "V, the vocabulary: wanted at least 1, got 0");
  REFUSES(NgramModel(text, 2), "ids: token 2 is 2, outside [0, 2), the vocabulary");
  REFUSES(NgramModel(Ids{1, -1}, 2), "ids: token 1 is -1, outside [0, 2), the vocabulary");
  REFUSES(NgramModel({}, 2), "ids, the text's tokens: wanted at least 1, got 0");
  const NgramModel model(text, 3);
  REFUSES(model.probability(text, 3), "next: wanted an id of the vocabulary, got 3");
  REFUSES(model.probability({}, -1), "next: wanted an id of the vocabulary, got -1");
  REFUSES(ngram_loss(model, Ids{0, 3}), "next: wanted an id of the vocabulary, got 3");
  REFUSES(ngram_loss(model, std::span(text).first(1)),
          "ids, a text to measure: wanted at least 2, got 1");
}

}  // namespace t2t::ngram_test
