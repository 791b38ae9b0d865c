// What a block's settings choose, as a list. LLaMA's choices make an empty list.
//
// Much of the book works with some choices only: a file format can express some, a kernel or a
// backward pass computes some. Such code names the choices that it knows and refuses all others.
// A choice added to BlockSettings later is therefore refused until the code learns it.
#pragma once

#include <initializer_list>
#include <string_view>
#include <vector>

#include "08_block/block_settings.hpp"

namespace t2t {

/// A way in which a block, or a model (chapter 09), can differ from LLaMA. Sizes, theta and eps are
/// no choices: code that supports only some values of these checks them itself.
enum class Choice {
  layer_norm,         // LayerNorm in place of RMSNorm
  norms_after,        // a norm after each sum, not before each sublayer
  norms_both,         // a norm before each sublayer, and one after it
  head_norms,         // norms of q's and k's heads
  heads_together,     // one norm of all heads of q, and one of those of k
  other_activation,   // another network than SwiGLU
  biases_of_qkv,      // biases of q, k and v alone
  biases_of_all,      // biases of every product
  window,             // a sliding window
  no_rope,            // q and k that are not rotated
  halves,             // RoPE that pairs element i with element i + D/2
  scaled_rope,        // RoPE whose frequencies are given
  score_factor,       // another factor of q·k than 1/√D
  score_cap,          // scores that a tanh keeps within ±cap
  experts,            // experts, of which a router chooses some for each token
  plain_shares,       // experts whose weights do not add up to 1
  shared_network,     // one more network beside the experts, which all tokens use
  learned_positions,  // of a model: positions that are learned and added to the embedding
  scaled_embedding,   // of a model: an embedding that is multiplied by a factor
  scaled_logits,      // of a model: logits that are multiplied by a factor
  logit_cap,          // of a model: logits that a tanh keeps within ±cap
  tied,               // of a model: a head that is the embedding's table
  layers_differ,      // of a model: blocks that are not all alike
};

/// The choices of a block in which it differs from LLaMA's.
std::vector<Choice> choices_of(const BlockSettings& settings);

/// Throws std::invalid_argument unless each choice is among the known ones: "the model to save:
/// wanted one without a sliding window".
void expect_only(const std::vector<Choice>& choices, std::initializer_list<Choice> known,
                 std::string_view what);

}  // namespace t2t
