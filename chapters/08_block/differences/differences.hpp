// How a block's settings differ from LLaMA's, as a list, which is empty for LLaMA itself.
//
// Much of the book works with some differences only: a file format can express some, a kernel or a
// backward pass computes some. Such code names the differences that it knows and refuses all
// others. A setting added to BlockSettings later is therefore refused until the code learns it.
#pragma once

#include <initializer_list>
#include <string_view>
#include <vector>

#include "08_block/block_settings.hpp"

namespace t2t {

/// A way in which a block, or a model (chapter 09), can differ from LLaMA. Sizes, theta and eps are
/// not listed: code that supports only some values of these checks them itself.
enum class Difference {
  layer_norm,            // LayerNorm in place of RMSNorm
  norms_after,           // post-norm: a norm after each sum, not before each sublayer
  norms_both,            // a norm before each sublayer, and one after it
  head_norms,            // QK-norm: norms of q's and k's heads
  heads_together,        // QK-norm with one norm of all heads of q, and one of those of k
  other_activation,      // a feed-forward network other than SwiGLU
  biases_of_qkv,         // biases of q, k and v alone
  biases_of_all,         // biases of every product
  window,                // a sliding window
  no_rope,               // q and k that are not rotated
  halves,                // RoPE that pairs element i with element i + D/2
  scaled_rope,           // RoPE whose frequencies are given
  score_scale,           // a factor of q·k other than 1/√D
  score_cap,             // scores that a tanh keeps within ±cap
  experts,               // experts, of which a router chooses some for each token
  unnormalized_experts,  // experts whose weights do not add up to 1
  shared_network,        // a shared expert, which all tokens use
  learned_positions,     // of a model: positions that are learned and added to the embedding
  scaled_embedding,      // of a model: an embedding that is multiplied by a factor
  scaled_logits,         // of a model: logits that are multiplied by a factor
  logit_cap,             // of a model: logits that a tanh keeps within ±cap
  tied,                  // of a model, tied weights: the embedding's table is the head
  layers_differ,         // of a model: blocks that are not all alike
};

/// The differences of a block from LLaMA's.
std::vector<Difference> differences_from_llama(const BlockSettings& settings);

/// Throws std::invalid_argument unless each difference is among the known ones: "the model to save:
/// wanted one without a sliding window".
void expect_only(const std::vector<Difference>& differences,
                 std::initializer_list<Difference> known, std::string_view what);

}  // namespace t2t
