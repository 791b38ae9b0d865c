// Which drafted tokens of a sequence are accepted, so that each token of the sequence is drawn from
// the model's own probabilities.
//
//   a draft x, drawn from q, is accepted with probability   min(1, p(x) / q(x))
//   if it is not, the token is drawn from                    max(0, p − q) / Σ max(0, p − q)
//
// Here p are the probabilities of the served model, the target, and q are the drafts'
// probabilities. One pass of the target computes k + 1 rows p for k drafts: one for the position of
// each draft, and one for the token after them. The token drawn in place of a draft ends the pass:
// later drafts are ignored. Leviathan et al. 2023, "Fast Inference from Transformers via
// Speculative Decoding"; Chen et al. 2023, "Accelerating Large Language Model Decoding with
// Speculative Sampling". A row of probabilities sums to 1 but for rounding.
#pragma once

#include <span>
#include <vector>

#include "tensor.hpp"

namespace t2t {

/// min(1, p(token) / q(token)), and 1 if both are 0. Throws std::invalid_argument when the rows are
/// empty or of unequal length, and for a token outside [0, V).
double acceptance(ConstRow p,  // [V]
                  ConstRow q,  // [V]
                  int token);

/// How often a draft from q is accepted: Σ min(p, q). Throws as acceptance does for the rows.
double acceptance_rate(ConstRow p, ConstRow q);

/// max(0, p − q) divided by its sum. If p exceeds q nowhere, the two are equal but for rounding,
/// and `rest` is p. Throws as acceptance does for the rows, of which `rest` is one.
void residual(ConstRow p,  // [V]
              ConstRow q,  // [V]
              Row rest);   // [V]

/// A sequence's next tokens: the first drafts, as many as are accepted, and one more. If a draft is
/// rejected, the last token is drawn from the residual in its place; if none is, from the last row
/// of p. There are 1 to k + 1 tokens. Draft i is accepted if uniform[i] is below its acceptance,
/// and uniform[k] draws the last token. Throws std::invalid_argument when the numbers of rows and
/// of uniform numbers do not fit k, and as the functions above do.
std::vector<int> accept_drafts(ConstMatrix p,                     // [k + 1, V]
                               ConstMatrix q,                     // [k, V]
                               std::span<const int> drafts,       // [k], draft i drawn from q[i]
                               std::span<const double> uniform);  // [k + 1], each in [0, 1)

/// The same for logits: the target's and the drafts' logits are divided by the temperature, and
/// softmax turns them into probabilities. Changes both. Throws as accept_drafts does, and unless
/// the temperature is above 0.
std::vector<int> accept_drafts_of_logits(Matrix target,   // [k + 1, V]
                                         Matrix drafted,  // [k, V]
                                         float temperature, std::span<const int> drafts,
                                         std::span<const double> uniform);

/// How many tokens a pass with k drafts yields on average, if each examined draft is accepted with
/// probability alpha: (1 − alpha^(k+1)) / (1 − alpha), or k + 1 for an alpha of 1. Throws
/// std::invalid_argument unless alpha is in [0, 1].
double expected_tokens(double alpha, std::size_t k);

/// How many times as fast a sequence advances as without drafts, if making a draft and reading it
/// in the pass costs `cost` times as much as a pass over a single token. This is expected_tokens /
/// (1 + k·cost). Throws as expected_tokens does, and for a cost below 0.
double expected_speedup(double alpha, std::size_t k, double cost);

}  // namespace t2t
