// What needs no model: the weights that three methods give to the tokens of two answers, three
// estimates of a KL divergence, and two of pass@k.
#pragma once

namespace t2t {

/// The weights of each token of a right and a wrong answer, by method.
void show_token_weights();

/// Exact means over all tokens of a small vocabulary.
void show_kl_estimates();

/// Exact means over all draws of some answers.
void show_pass_at_k();

}  // namespace t2t
