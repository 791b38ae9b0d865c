// The sizes of a language model from which a planner counts: no weights are made.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace t2t {

/// A decoder of L equal blocks, apart from `dense_blocks` at its beginning whose feed-forward
/// network is no mixture. A dense model has one expert, which is active for every token.
struct ModelShape {
  std::string_view name;
  std::size_t L, C, H, G, D, V;
  std::size_t F;                 // hidden elements of a feed-forward network, or of one expert
  std::size_t matrices = 3;      // of a feed-forward network: 3 with a gate, otherwise 2
  std::size_t experts = 1;       // of a block, those among which a router chooses
  std::size_t active = 1;        // how many of these a token goes through
  std::size_t shared = 0;        // experts that every token goes through, besides
  std::size_t dense_blocks = 0;  // blocks without a router
  std::size_t dense_F = 0;       // hidden elements of their network
  std::size_t attention = 0;     // weights of a block's attention; 0: C·D·(2H + 2G)
};

/// Weights of a block's attention.
double attention_weights(const ModelShape& model);
/// Weights of all experts of a block among which the router chooses.
double expert_weights(const ModelShape& model);
/// The weights of a block with a router, without these experts.
double other_weights(const ModelShape& model);
/// All weights: blocks, embedding and head. Those of norms and routers are too few to count.
double parameters(const ModelShape& model);
/// The weights that one token is multiplied by: its active experts, and the head.
double active_parameters(const ModelShape& model);

/// LLaMA-2 7B and 70B, GPT-3 175B, Mixtral 8x7B, DeepSeek-V3 and Llama 3 405B.
std::span<const ModelShape> known_models();
/// The known model of this name. Throws std::invalid_argument, with the names, if there is none.
const ModelShape& known_model(std::string_view name);

}  // namespace t2t
