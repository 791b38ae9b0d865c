// A model whose blocks attend to latents, run with a cache: from ids to logits.
//
//   x = embedding[ids]                          of T new tokens, which follow the cached ones
//   x = x + attention(norm(x))                  it appends (c, kʳ) to the block's cache
//   x = x + network(norm(x))                    or experts and the shared network
//   logits = norm(x)·headᵀ                      [T, V]
//
// A call of several tokens uses attention's plain form, and a call of one token its absorbed form
// (cache/latent_cache.hpp). The large matrices are Weights, which may be packed as in chapter 12;
// those of attention are floats. DeepSeek-AI 2024, "DeepSeek-V2" and "DeepSeek-V3".
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "07_swiglu/fast/feed_forward_rows.hpp"
#include "14_mixture_of_experts/experts.hpp"
#include "23_latent/cache/latent_cache.hpp"
#include "23_latent/model/latent_config.hpp"
#include "weight.hpp"

namespace t2t {

/// The weights of one block. What its layer lacks stays empty.
struct LatentBlock {
  Tensor<1> attention_gain;  // [C]
  LatentWeights attention;
  Tensor<1> network_gain;                   // [C]
  FeedForwardWeights network;               // of width F, in a dense block
  Weight router;                            // [E, C], floats
  Tensor<1> bias;                           // [E], of the choice alone; or empty
  std::vector<FeedForwardWeights> experts;  // [E], of width F_expert
  FeedForwardWeights shared;                // of width F_shared
};

struct LatentModel {
  LatentConfig config;
  Weight embedding;                 // [V, C]
  std::vector<LatentBlock> blocks;  // L
  Tensor<1> final_gain;             // [C]
  Weight head;                      // [V, C]; empty if tied

  const Weight& output() const { return config.tied ? embedding : head; }
};

/// Throws std::invalid_argument as expect_latent_config does, and for a weight of another shape,
/// which it names with its block.
void expect_latent_model(const LatentModel& model);

/// Every matrix from a normal distribution with mean 0 and variance 1 / in, the gains 1. Blocks
/// with a sigmoid router get biases from N(0, 0.1²). Throws as expect_latent_config does.
LatentModel draw_latent_model(const LatentConfig& config, Random& random);

/// How many parameters the weights have.
std::size_t parameter_count(const LatentModel& model);

/// A sequence: the caches of all blocks, RoPE's table, and memory for calls of up to `chunk` rows.
struct LatentState {
  std::vector<LatentCache> caches;  // L
  RopeTable rope;                   // [S, R/2]
  std::size_t chunk;
  LatentScratch attention;
  FeedForwardScratch network;
  std::optional<ExpertsScratch> experts;  // if a block has them

  /// For sequences of up to S tokens. Throws std::invalid_argument as expect_latent_config does,
  /// when S is above T_max, and when S or chunk is 0.
  LatentState(const LatentConfig& config, std::size_t S, std::size_t chunk = 64);
  std::size_t length() const { return caches.front().length; }
};

/// The last norm's output for new tokens: [T, C]. The state must be one of this model's config.
/// Throws std::invalid_argument, before anything is computed, when there are no ids, for an id that
/// is not below V, and when the caches have no room. It also throws, naming the token, when a
/// router's scores are not finite; the state must not be used again then.
Tensor<2> latent_stream(std::span<const int> ids, const LatentModel& model, LatentState& state);

/// The logits of new tokens: [T, V]. Throws as latent_stream does.
Tensor<2> latent_logits(std::span<const int> ids, const LatentModel& model, LatentState& state);

}  // namespace t2t
