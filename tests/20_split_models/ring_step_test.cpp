// Chapter 20: one step of the ring of keys and values.
#include "20_split_models/context_parallel/ring_step.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "19_ranks/counting/counts.hpp"
#include "19_ranks/on_ranks.hpp"
#include "20_split_models/each_rank.hpp"
#include "support/all_close.hpp"
#include "support/refuses.hpp"

namespace t2t::ring_step_tests {

using Floats = std::vector<float>;
using Positions = std::vector<std::size_t>;

static const float ln3 = std::log(3.f), ln4 = std::log(4.f);

/// What is known after some keys: m, l, and the elements of o.
static Tensor<1> known(const OnlineSoftmax& so_far) {
  Tensor<1> all = empty(so_far.values.size() + 2);
  all(0) = so_far.highest, all(1) = so_far.sum;
  std::ranges::copy(so_far.values, all.begin() + 2);
  return all;
}

/// A difference of two scores is off by 3u, for the roundings of both and its own, and thus an
/// exponential by 5u of itself. A term is rescaled twice at most, by 6u each time, multiplied by
/// its value and added three times, by u each time; what is wanted is rounded once. Sums reach
/// 28/3.
static constexpr double u = 0x1p-24, bound = (5 + 2 * 6 + 1 + 3 + 1) * u * 28 / 3;

TEST_CASE("by hand: scores 0 and ln 3 in one block and ln 4 in the other, in either order") {
  const KeyBlock first = {0, {0, 1}, {{0, 4}, {ln3, 8}}}, second = {1, {2}, {{ln4, 2}}};
  const Floats q = {1};
  OnlineSoftmax so_far(1), other_order(1);
  const Tensor<1> after_first = {ln3, 4 / 3.f, 28 / 3.f}, after_second = {ln4, 1, 2};
  const Tensor<1> after_both = {ln4, 2, 9};  // the mean is 9/2
  meet(so_far, q, 2, first, 0, 1);
  CHECK(all_close(known(so_far), after_first, bound));
  meet(so_far, q, 2, second, 0, 1);
  CHECK(all_close(known(so_far), after_both, bound));
  meet(other_order, q, 2, second, 0, 1);
  CHECK(all_close(known(other_order), after_second, bound));
  meet(other_order, q, 2, first, 0, 1);
  CHECK(all_close(known(other_order), after_both, bound));
}

TEST_CASE("by hand: the key of head 1 of two comes before all values, and its value last") {
  // D = 4, so that √D = 2: the product 2·ln 3 is a score of ln 3. A row is k0 k1 v0 v1.
  const KeyBlock block = {0,
                          {0, 1},
                          {{9, 9, 9, 9, 0, 0, 0, 0, 7, 7, 7, 7, 4, 0, 1, 2},
                           {9, 9, 9, 9, ln3, 0, 0, 0, 7, 7, 7, 7, 8, 0, 1, 2}}};
  OnlineSoftmax so_far(4);
  meet(so_far, Floats{2, 0, 0, 0}, 1, block, 1, 2);
  const Tensor<1> want = {ln3, 4 / 3.f, 28 / 3.f, 0, 4 / 3.f, 8 / 3.f};
  CHECK(all_close(known(so_far), want, bound));
}

TEST_CASE("by hand: a query sees the keys up to its own position, wherever they lie in the block") {
  // Rank 0's block of 8 tokens in a zigzag on two ranks. All scores are 0, and values are powers of
  // 2: their sum says which keys were met.
  const KeyBlock block = {0, {0, 1, 6, 7}, {{0, 1}, {0, 2}, {0, 4}, {0, 8}}};
  const auto met = [&](std::size_t position) {
    OnlineSoftmax so_far(1);
    meet(so_far, Floats{1}, position, block, 0, 1);
    return known(so_far);
  };
  CHECK(all_close(met(0), Tensor<1>{0, 1, 1}, 0));
  CHECK(all_close(met(2), Tensor<1>{0, 2, 3}, 0));
  CHECK(all_close(met(5), Tensor<1>{0, 2, 3}, 0));
  CHECK(all_close(met(6), Tensor<1>{0, 3, 7}, 0));
  CHECK(all_close(met(7), Tensor<1>{0, 4, 15}, 0));
}

TEST_CASE("a query before all keys of a block learns nothing from it") {
  const KeyBlock block = {1, {2, 3}, {{ln3, 4}, {ln4, 8}}};
  OnlineSoftmax so_far(1);
  meet(so_far, Floats{1}, 1, block, 0, 1);
  CHECK(so_far.highest == -INFINITY);
  CHECK(so_far.sum == 0);
  CHECK(so_far.values(0) == 0);
}

TEST_CASE("by hand: query heads 0 and 1 read key head 0, and heads 2 and 3 key head 1") {
  // Two tokens, four query heads, two key heads, D = 1. All keys are 1: a score is the query.
  const DividedSequence sequence = {8, TokenOrder::zigzag, 4, 2};
  const KeyBlock block = {1, {2, 5}, {{1, 1, 1, 10}, {1, 1, 2, 20}}};
  const Tensor<2> q = {{0, 1, 2, 3}, {4, 5, 6, 7}};
  std::vector<OnlineSoftmax> so_far(8, OnlineSoftmax(1));
  meet_all(so_far, sequence, q, Positions{3, 6}, block);
  // Token 3 sees the key of token 2, and token 6 sees both.
  const Floats sums = {1, 1, 1, 1, 2, 2, 2, 2}, values = {1, 1, 10, 10, 3, 3, 30, 30};
  for (std::size_t i = 0; i < so_far.size(); ++i) {
    CAPTURE(i);
    CHECK(so_far[i].highest == float(i));
    CHECK(so_far[i].sum == sums[i]);
    CHECK(so_far[i].values(0) == values[i]);
  }
}

/// The block of a rank, whose elements say to which token and column they belong.
static KeyBlock block_of(const DividedSequence& sequence, std::size_t D, std::size_t size,
                         std::size_t rank) {
  const Positions own = positions_in(token_ranges(sequence.order, sequence.T, size, rank));
  KeyBlock block = {rank, own, empty(own.size(), 2 * sequence.G * D)};
  for (std::size_t s = 0; s < own.size(); ++s)
    for (std::size_t c = 0; c < 2 * sequence.G * D; ++c)
      block.keys_values(s, c) = float(100 * own[s] + c);
  return block;
}
/// Owner, positions and elements, one after the other.
static Floats floats_of(const KeyBlock& block) {
  Floats all = {float(block.owner)};
  for (const std::size_t position : block.positions) all.push_back(float(position));
  all.insert(all.end(), block.keys_values.begin(), block.keys_values.end());
  return all;
}

/// What a rank has after so many steps.
static OnRanks passed_on_by(std::size_t steps, std::size_t p, const DividedSequence& sequence) {
  return on_ranks(p, [&](const Communicator& ranks) {
    KeyBlock block = block_of(sequence, 1, p, ranks.rank);
    for (std::size_t s = 0; s < steps; ++s) block = passed_on(ranks, sequence, block);
    return floats_of(block);
  });
}

TEST_CASE("by hand: three ranks with two tokens each pass their blocks on, once and twice") {
  // Owner; positions; of each token a key and a value, which say whose they are.
  const DividedSequence sequence = {6, TokenOrder::neighbours, 1, 1};
  const Floats of_0 = {0, 0, 1, 0, 1, 100, 101}, of_1 = {1, 2, 3, 200, 201, 300, 301},
               of_2 = {2, 4, 5, 400, 401, 500, 501};
  CHECK(first_wrong_rank(passed_on_by(1, 3, sequence), {of_2, of_0, of_1}) == "");
  CHECK(first_wrong_rank(passed_on_by(2, 3, sequence), {of_1, of_2, of_0}) == "");
}

TEST_CASE("by hand: three ranks with 3, 3 and 4 tokens make room for those of the rank before") {
  const DividedSequence sequence = {10, TokenOrder::neighbours, 1, 1};
  const Floats of_0 = {0, 0, 1, 2, 0, 1, 100, 101, 200, 201};
  const Floats of_1 = {1, 3, 4, 5, 300, 301, 400, 401, 500, 501};
  const Floats of_2 = {2, 6, 7, 8, 9, 600, 601, 700, 701, 800, 801, 900, 901};
  CHECK(first_wrong_rank(passed_on_by(1, 3, sequence), {of_2, of_0, of_1}) == "");
}

TEST_CASE("after s steps a rank has the block of s ranks before, and after p its own again") {
  for (const TokenOrder order : {TokenOrder::neighbours, TokenOrder::zigzag})
    for (std::size_t p = 1; p <= most_ranks; ++p)
      for (const std::size_t T : {1, 3, 10, 37}) {
        CAPTURE(p);
        CAPTURE(T);
        const DividedSequence sequence = {T, order, 6, 2};
        const OnRanks got = on_ranks(p, [&](const Communicator& ranks) {
          const Sent before = sent();
          KeyBlock block = block_of(sequence, 4, p, ranks.rank);
          Floats right;
          for (std::size_t s = 1; s <= p; ++s) {
            block = passed_on(ranks, sequence, block);
            const std::size_t owner = (ranks.rank + p - s) % p;
            right.push_back(float(floats_of(block) == floats_of(block_of(sequence, 4, p, owner))));
          }
          right.push_back(float((sent() - before).messages));
          return right;
        });
        Floats want(p, 1);
        want.push_back(float(p));
        CHECK(first_wrong(got, want) == "");
        if (!got.error.empty()) return;  // ranks that failed answer no more calls
      }
}

TEST_CASE("keys and values of another number or width are refused") {
  const DividedSequence sequence = {8, TokenOrder::zigzag, 4, 2};
  const Tensor<2> q = xt::zeros<float>({2, 12});
  std::vector<OnlineSoftmax> so_far(8, OnlineSoftmax(3));
  const auto met = [&](std::size_t rows, std::size_t cols) {
    const KeyBlock block = {0, {0, 1, 6}, xt::zeros<float>({rows, cols})};
    meet_all(so_far, sequence, q, Positions{2, 3}, block);
  };
  met(3, 12);
  REFUSES(met(2, 12), "keys_values: wanted shape [3, 12], got [2, 12]");
  REFUSES(met(3, 6), "keys_values: wanted shape [3, 12], got [3, 6]");
}

}  // namespace t2t::ring_step_tests
