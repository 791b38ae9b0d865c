// Sampling: from the logits of all tokens to the one token that comes next.
//
//   temperature  logits / temperature
//   top-k        keeps the k likeliest tokens
//   top-p        keeps the fewest likeliest tokens whose probabilities sum to p or more
//   min-p        keeps the tokens at least min_p times as likely as the likeliest
//
// Each works on a row of logits in place. The last three, the filters, give −infinity to the tokens
// that they drop and leave the other logits as they are. Holtzman et al. 2020, "The Curious Case of
// Neural Text Degeneration" (top-p); Fan et al. 2018, "Hierarchical Neural Story Generation"
// (top-k); Nguyen et al. 2024, "Turning Up the Heat" (min-p). generate.hpp calls next_token; this
// chapter's and chapter 10's programs set it by flags.
#pragma once

#include <cstddef>
#include <vector>

#include "random.hpp"
#include "tensor.hpp"

namespace t2t {

/// Memory for the filters and for draw: made once, for rows of up to V logits. They throw
/// std::invalid_argument for a longer row.
struct SamplingScratch {
  std::vector<int> order;  // [V]
  Tensor<1> weights;       // [V]

  explicit SamplingScratch(std::size_t V) : order(V), weights(empty(V)) {}
};

/// The likeliest token; of equally likely ones the first. Throws std::invalid_argument, naming the
/// token, when a logit is NaN or +infinity, and when none is above −infinity. So do all below.
int greedy(ConstRow logits);  // [V]

/// Subtracts the highest logit, which changes no probability, and divides by the temperature. Below
/// 1 likely tokens become likelier, above 1 the probabilities move closer together. Throws
/// std::invalid_argument unless temperature is finite and above 0.
void apply_temperature(Row logits, float temperature);

/// Of equally likely tokens the first ones are kept. A k of V or more drops nothing. Throws
/// std::invalid_argument when k is 0.
void keep_top_k(Row logits, std::size_t k, SamplingScratch& scratch);

/// Keeps at least one token. A p of 1 drops nothing. The probabilities, floats, are added up in
/// double and compared with p without a tolerance. Throws std::invalid_argument unless p is in
/// (0, 1].
void keep_top_p(Row logits, float p, SamplingScratch& scratch);

/// Drops each logit below the highest + ln(min_p); a min_p of 0 drops nothing. Throws
/// std::invalid_argument unless min_p is in [0, 1].
void keep_min_p(Row logits, float min_p);

/// The token at which the sum of the probabilities, from token 0 on, exceeds u times the sum of
/// all. A token of probability 0 is never returned, if there is another. Throws
/// std::invalid_argument for an empty row, and unless u is in [0, 1).
int token_at(ConstRow probabilities, double u);

/// A token drawn at random, each with its softmax probability: token_at with one next_uniform().
int draw(ConstRow logits, Random& random, SamplingScratch& scratch);

/// The filters in the order in which next_token applies them. Exchanging top-k with the temperature
/// or with min-p changes nothing but roundings. Exchanging other neighbours can change the result:
/// a temperature changes the probabilities that top-p and min-p compare, and a filter raises the
/// probabilities of the tokens that it keeps.
struct Sampling {
  float temperature = 1;  // 0: greedy; the rest is checked, but not used
  std::size_t top_k = 0;  // 0: off
  float top_p = 1;        // 1: off
  float min_p = 0;        // 0: off
};
/// Throws std::invalid_argument, naming the first value that is out of its range.
void expect_sampling(const Sampling& sampling);

/// Temperature, top-k, top-p, min-p, then draw; or greedy at temperature 0. Changes the logits.
int next_token(Row logits, const Sampling& sampling, Random& random, SamplingScratch& scratch);

}  // namespace t2t
