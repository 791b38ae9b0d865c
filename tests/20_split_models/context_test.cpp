// Chapter 20: attention over a sequence that is divided among ranks.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "06_gqa/grouped_query_attention.hpp"
#include "19_ranks/on_ranks.hpp"
#include "20_split_models/context_parallel/ring_attention.hpp"
#include "random.hpp"
#include "support/all_close.hpp"
#include "support/attention_in_double.hpp"
#include "support/refuses.hpp"

namespace t2t::context_tests {

static const std::vector<TokenOrder> orders = {TokenOrder::neighbours, TokenOrder::zigzag};

/// The same on every rank.
struct Whole {
  Tensor<2> q, k, v;  // [T, H·D], [T, G·D]
};
static Whole draw(const DividedSequence& sequence, std::size_t D) {
  Random random(7);
  const auto drawn = [&](std::size_t heads) { return random.normal<2>({sequence.T, heads * D}); };
  return {drawn(sequence.H), drawn(sequence.G), drawn(sequence.G)};
}

static Tensor<2> rows_of(const Tensor<2>& x, const std::vector<std::size_t>& positions) {
  Tensor<2> own = empty(positions.size(), x.shape(1));
  for (std::size_t i = 0; i < positions.size(); ++i)
    std::ranges::copy(row(x, positions[i]), row(own, i).begin());
  return own;
}

TEST_CASE("by hand: who has which tokens") {
  const auto begins = [](TokenOrder order, std::size_t r) {
    return positions_in(token_ranges(order, 8, 2, r));
  };
  CHECK(begins(TokenOrder::neighbours, 0) == std::vector<std::size_t>{0, 1, 2, 3});
  CHECK(begins(TokenOrder::zigzag, 0) == std::vector<std::size_t>{0, 1, 6, 7});
  CHECK(begins(TokenOrder::zigzag, 1) == std::vector<std::size_t>{2, 3, 4, 5});
  // 1 + 2 + 3 + 4 pairs of 36 for the first four tokens; 1 + 2 + 7 + 8 and 3 + 4 + 5 + 6 in a
  // zigzag.
  CHECK(pairs_of(token_ranges(TokenOrder::neighbours, 8, 2, 0)) == 10);
  CHECK(pairs_of(token_ranges(TokenOrder::neighbours, 8, 2, 1)) == 26);
  CHECK(pairs_of(token_ranges(TokenOrder::zigzag, 8, 2, 0)) == 18);
  CHECK(pairs_of(token_ranges(TokenOrder::zigzag, 8, 2, 1)) == 18);
}

TEST_CASE("every token has one owner, and in a zigzag the work is even") {
  for (const TokenOrder order : orders)
    for (std::size_t size = 1; size <= 8; ++size)
      for (const std::size_t T : {1, 7, 16, 1000}) {
        std::vector<std::size_t> all;
        for (std::size_t r = 0; r < size; ++r) {
          const auto own = positions_in(token_ranges(order, T, size, r));
          CHECK(std::ranges::is_sorted(own));
          all.insert(all.end(), own.begin(), own.end());
        }
        std::ranges::sort(all);
        CHECK(all.size() == T);
        for (std::size_t t = 0; t < all.size(); ++t) CHECK(all[t] == t);
      }
  for (std::size_t r = 0; r < 4; ++r) {
    const double mean = 4096.0 * 4097 / 2 / 4;
    CHECK(double(pairs_of(token_ranges(TokenOrder::zigzag, 4096, 4, r))) == mean);
  }
  CHECK(pairs_of(token_ranges(TokenOrder::neighbours, 4096, 4, 3)) > 1.74 * 4096 * 4097 / 8);
}

/// How far rounding may move an element of the result. A score of at most `score` is wrong by D + 3
/// roundings of it, and its difference from the highest by two more; this and the roundings of each
/// rescaling and addition, at most 3 a key, are the relative error of a weight. Both sums have it.
static double bound(const Whole& whole, const DividedSequence& sequence, std::size_t D) {
  double score = 0, value = 0;
  for (std::size_t t = 0; t < sequence.T; ++t)
    for (std::size_t s = 0; s < sequence.T; ++s)
      for (std::size_t h = 0; h < sequence.H; ++h) {
        double sum = 0;
        for (std::size_t d = 0; d < D; ++d)
          sum += std::abs(double(whole.q(t, h * D + d)) *
                          whole.k(s, group_of(h, sequence.H, sequence.G) * D + d));
        score = std::max(score, sum / std::sqrt(double(D)));
      }
  for (const float number : whole.v) value = std::max(value, std::abs(double(number)));
  const double u = std::ldexp(1.0, -24);
  return 2 * value * u * (double(D + 5) * score + 3 * double(sequence.T) + 6);
}

TEST_CASE("a divided sequence's attention is the whole one's, on any number of ranks") {
  for (const TokenOrder order : orders)
    for (std::size_t p = 1; p <= most_ranks; ++p)
      for (const std::size_t T : {1, 3, 10, 37}) {
        CAPTURE(p);
        CAPTURE(T);
        const DividedSequence sequence = {T, order, 6, 2};
        const std::size_t D = 4;
        const Whole whole = draw(sequence, D);
        const Tensor<2> want = attention_in_double(whole.q, whole.k, whole.v, 6, 2, Mask::causal);
        const auto own_tokens = [&](std::size_t r) {
          return positions_in(token_ranges(order, T, p, r));
        };
        const OnRanks got = on_ranks(p, [&](const Communicator& ranks) -> std::vector<float> {
          const auto own = own_tokens(ranks.rank);
          const Tensor<2> out = ring_attention(ranks, sequence, rows_of(whole.q, own),
                                               rows_of(whole.k, own), rows_of(whole.v, own));
          return {out.begin(), out.end()};
        });
        CHECK(got.error == "");
        if (got.error != "") return;  // ranks that failed answer no more calls
        for (std::size_t r = 0; r < p; ++r) {
          const Tensor<2> rows = rows_of(want, own_tokens(r));
          Tensor<2> own = empty(rows.shape(0), rows.shape(1));
          REQUIRE(got.results[r].size() == own.size());
          std::ranges::copy(got.results[r], own.begin());
          CHECK(all_close(own, rows, bound(whole, sequence, D)));
        }
      }
}

TEST_CASE("the messages that are counted are the formula's") {
  for (std::size_t p = 1; p <= most_ranks; ++p)
    for (const std::size_t T : {3, 37}) {
      const DividedSequence sequence = {T, TokenOrder::zigzag, 6, 2};
      const Whole whole = draw(sequence, 4);
      const OnRanks got = on_ranks(p, [&](const Communicator& ranks) -> std::vector<float> {
        const auto own = positions_in(token_ranges(sequence.order, T, p, ranks.rank));
        const Sent before = sent();
        ring_attention(ranks, sequence, rows_of(whole.q, own), rows_of(whole.k, own),
                       rows_of(whole.v, own));
        const Sent counted = sent() - before;
        return {float(counted.messages), float(counted.bytes)};
      });
      CHECK(got.error == "");
      if (got.error != "") return;  // ranks that failed answer no more calls
      for (std::size_t r = 0; r < p; ++r) {
        const Sent cost = ring_attention_cost(sequence, 4, p, r);
        CHECK(got.results[r] == std::vector<float>{float(cost.messages), float(cost.bytes)});
      }
    }
}

TEST_CASE("by hand: 10 tokens on 3 ranks send the keys and values of all ranks but the next") {
  // Ranks have 3, 3 and 4 tokens, each with 2·2·4 floats.
  const DividedSequence sequence = {10, TokenOrder::neighbours, 6, 2};
  CHECK(ring_attention_cost(sequence, 4, 3, 0) == Sent{2, 7 * 16 * 4});
  CHECK(ring_attention_cost(sequence, 4, 3, 1) == Sent{2, 6 * 16 * 4});
  CHECK(ring_attention_cost(sequence, 4, 1, 0) == Sent{0, 0});
}

TEST_CASE("wrong shapes are refused, before anything is sent") {
  const DividedSequence sequence = {10, TokenOrder::zigzag, 6, 2};
  const Communicator alone = {all_ranks().handle, 0, 1};
  const Tensor<2> q = xt::zeros<float>({10, 24}), k = xt::zeros<float>({10, 8});
  const Tensor<2> short_k = xt::zeros<float>({9, 8});
  REFUSES(ring_attention(alone, sequence, q, short_k, k), "k: wanted shape [10, 8], got [9, 8]");
  REFUSES(ring_attention(alone, {10, TokenOrder::zigzag, 5, 2}, q, k, k),
          "groups: wanted G key and value heads that divide H query heads, got H = 5, G = 2");
  REFUSES(ring_attention(alone, {11, TokenOrder::zigzag, 6, 2}, q, k, k),
          "q: wanted shape [11, 24], got [10, 24]");
}

}  // namespace t2t::context_tests
