// Direct preference optimization: a model learns from pairs of answers to one question, of which
// people prefer the first. With ℓ = Σ ln p over an answer's tokens and its end mark, of the chosen
// and the rejected answer, for the model and for a fixed reference:
//
//   z = β·[(ℓ_chosen − ℓref_chosen) − (ℓ_rejected − ℓref_rejected)]        loss = −ln σ(z)
//   weight of each of the chosen answer's tokens β·σ(−z)/P, of the rejected one's −β·σ(−z)/P
//
// The reference is the model before the first step. It is needed only for its two ℓ per pair, which
// are computed once. σ is the logistic function, and P the number of pairs in the batch.
// Rafailov et al. 2023, "Direct Preference Optimization". The term for supervised fine-tuning:
// Pang et al. 2024, "Iterative Reasoning Preference Optimization".
#pragma once

#include <span>
#include <vector>

#include "13_training/backward/passes.hpp"

namespace t2t {

/// ℓ of each sequence of a batch, in nats: the sum of ln p over its targets that are learned.
/// Throws std::invalid_argument unless there is one for each of the batch's tokens.
std::vector<double> answer_log_p(const Batch& batch,
                                 std::span<const double> log_p);  // [B·T]

/// ℓ of the two answers of a pair.
struct AnswerPair {
  double chosen, rejected;
};

/// How much more the model has come to prefer the chosen answer than the reference does, times β.
double dpo_z(const AnswerPair& model, const AnswerPair& reference, double beta);
/// −ln σ(z), which neither overflows nor loses small values.
double dpo_loss(double z);
/// σ(−z), the loss's derivative without its sign: near 1 for a pair in the wrong order, near 0 for
/// one that the model already tells apart.
double dpo_pull(double z);

struct DpoOptions {
  double beta = 0.1;  // how strongly a change of ℓ counts; in the loss, not a rate
  double sft = 0;     // of the loss −ℓ_chosen, which is added to each pair's
};

/// Means over the batch's pairs, before the step that the weights are for.
struct DpoReport {
  double loss;
  double in_order;          // share of pairs with z > 0
  double chosen, rejected;  // ℓ − ℓref
};

/// Writes the weight of each token of a batch with P = B/2 pairs: sequence i is the chosen answer
/// of pair i, and sequence P + i the rejected one. Targets that are not learned get the weight 0.
/// Throws std::invalid_argument when B is odd, when sizes differ, and unless β is above 0 and sft
/// at least 0.
DpoReport dpo_weights(const Batch& batch,
                      std::span<const double> model,      // [B], ℓ
                      std::span<const double> reference,  // [B], ℓref
                      const DpoOptions& options,
                      Row weights);  // [B·T], written

}  // namespace t2t
