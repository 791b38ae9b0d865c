// How likely a token was, and which tokens would have been likelier: log-probabilities.
//
//   log p(v) = logits[v] − log Σ exp(logits[u])
//
// The logits are the model's own: neither temperature nor filters have changed them.
#pragma once

#include <cstddef>
#include <vector>

#include "tensor.hpp"

namespace t2t {

struct TokenLogprob {
  int id;
  double log_p;  // −infinity if the token was forbidden
};
struct TokenLogprobs {
  TokenLogprob token;
  std::vector<TokenLogprob> likeliest;  // in falling order; equally likely tokens by id
};

/// The log-probabilities of token `id` and of the `top_logprobs` likeliest tokens, or of all V if
/// there are fewer. Throws std::invalid_argument for an id outside [0, V), and std::runtime_error
/// for logits that are NaN or infinity, or all −infinity.
TokenLogprobs token_logprobs(ConstRow logits, int id, std::size_t top_logprobs);

}  // namespace t2t
