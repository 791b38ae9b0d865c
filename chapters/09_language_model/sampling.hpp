// Sampling: from the scores of all that could come next to the one token that does.
//
//   temperature  logits / temperature              top-k  the k likeliest
//   top-p        the likeliest that reach p together, the one that crosses it with them
//   min-p        those at least min_p times as likely as the likeliest
//
// Each works on a row of logits in place: what is dropped becomes −infinity, and the rest keeps its
// odds. Holtzman et al. 2020, "The Curious Case of Neural Text Degeneration" (top-p); Fan et al.
// 2018, "Hierarchical Neural Story Generation" (top-k); Nguyen et al. 2024, "Turning Up the Heat"
// (min-p). generate.hpp calls next_token; chapter 10's programs set it by flags.
#pragma once

#include <cstddef>
#include <vector>

#include "random.hpp"
#include "tensor.hpp"

namespace t2t {

/// What a filter or a draw needs on the way: made once, for rows of any length up to V.
struct SamplingScratch {
  std::vector<int> order;  // [V]
  Tensor<1> weights;       // [V]

  explicit SamplingScratch(std::size_t V) : order(V), weights(empty(V)) {}
};

/// The likeliest token; of equals the first. Throws std::invalid_argument, naming the token, when a
/// logit is NaN or +infinity, and when none is above −infinity. So do all below.
int greedy(ConstRow logits);  // [V]

/// Below 1 the likely become likelier, above 1 all become alike; the likeliest comes out as 0,
/// which changes no odds. Throws std::invalid_argument unless temperature is above 0 (towards 0 it
/// becomes greedy).
void apply_temperature(Row logits, float temperature);

/// Of equals at the edge, the first ones stay. k of V or more drops nothing; 0 is refused.
void keep_top_k(Row logits, std::size_t k, SamplingScratch& scratch);

/// The shortest list of likeliest tokens whose probabilities sum to at least p: never empty. Throws
/// std::invalid_argument unless p is in (0, 1]; 1 drops nothing.
void keep_top_p(Row logits, float p, SamplingScratch& scratch);

/// Throws std::invalid_argument unless min_p is in [0, 1]; 0 drops nothing.
void keep_min_p(Row logits, float min_p);

/// One token, each with its softmax probability.
int draw(ConstRow logits, Random& random, SamplingScratch& scratch);

/// The filters in the order in which they are applied. Top-k may change places with the
/// temperature or with min-p. Every other exchange changes the result, since a temperature moves
/// the probabilities that the others look at, and each filter raises those of what it leaves.
/// (llama.cpp takes the temperature last.)
struct Sampling {
  float temperature = 1;  // 0: greedy, whatever the rest
  std::size_t top_k = 0;  // 0: off
  float top_p = 1;        // 1: off
  float min_p = 0;        // 0: off
};
/// Throws std::invalid_argument, naming the first that is out of its range.
void expect_sampling(const Sampling& sampling);

/// All of it: temperature, top-k, top-p, min-p, draw. The logits are left filtered.
int next_token(Row logits, const Sampling& sampling, Random& random, SamplingScratch& scratch);

}  // namespace t2t
