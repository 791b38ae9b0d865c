// Qwen3-Next, a hybrid: of every four blocks, three have the delta rule's layer and a state of
// fixed size, and the fourth attends and has a cache.
//
//   x = embedding[ids]                           of T new tokens
//   x = x + mixer(norm(x))                       delta_layer.hpp, or gated_attention.hpp
//   x = x + experts(norm(x))                     k of E networks, and a shared one with a gate
//   logits = norm(x)·headᵀ                       [T, V]
//
// A call of several tokens goes through the states in chunks, and a call of one token takes a step.
// What a sequence leaves are the states, which do not grow, and the caches of one block in four.
// The states cannot be cut back to an earlier position: they hold no single tokens. The matrices of
// the networks, the embedding, the head and attention are Weights, which may be packed as in
// chapter 12; those of the delta layers are floats. Qwen team 2025, "Qwen3-Next".
#pragma once

#include <span>
#include <vector>

#include "14_mixture_of_experts/experts.hpp"
#include "24_delta_rule/layer/delta_layer.hpp"
#include "24_delta_rule/qwen3_next/gated_attention.hpp"

namespace t2t {

struct Qwen3NextConfig {
  GatedAttentionSettings attention;  // its C and eps are also those of the model's norms
  DeltaLayerSettings delta;
  std::size_t L, V, T_max;
  std::size_t every = 4;       // of so many blocks that follow one another, the last attends
  std::size_t E, F, F_shared;  // experts of a block, their width, and the shared network's
  RouterSettings router = {};  // k; softmax, with weights that add up to 1
  float theta = 10000;         // RoPE's
  bool tied = false;           // whether the head is the embedding

  bool attends(std::size_t layer) const;
  std::size_t attention_layers() const { return L / every; }
};
/// Throws std::invalid_argument, naming the value, as expect_gated, expect_delta_layer and
/// expect_router do, when attention's C or eps and the delta layer's differ, when another size is
/// 0, and unless theta is a finite number above 0.
void expect_qwen3_next_config(const Qwen3NextConfig& config);

/// Of attention and delta, one stays empty.
struct Qwen3NextBlock {
  Tensor<1> mixer_gain;  // [C]
  GatedAttentionWeights attention;
  DeltaLayerWeights delta;
  Tensor<1> network_gain;                   // [C]
  Weight router;                            // [E, C], floats
  std::vector<FeedForwardWeights> experts;  // [E], of width F
  FeedForwardWeights shared;                // of width F_shared
  Weight shared_gate;                       // [1, C]
};

struct Qwen3Next {
  Qwen3NextConfig config;
  Weight embedding;                    // [V, C]
  std::vector<Qwen3NextBlock> blocks;  // L
  Tensor<1> final_gain;                // [C]
  Weight head;                         // [V, C]; empty if tied

  const Weight& output() const { return config.tied ? embedding : head; }
};
/// Throws std::invalid_argument as expect_qwen3_next_config does, and for a weight of another
/// shape, which it names with its block.
void expect_qwen3_next(const Qwen3Next& model);
/// Matrices from a normal distribution with mean 0 and variance 1 / in, gains 1, and delta layers
/// as draw_delta_weights makes them. Throws as expect_qwen3_next_config does.
Qwen3Next draw_qwen3_next(const Qwen3NextConfig& config, Random& random);
/// How many parameters the weights have.
std::size_t parameter_count(const Qwen3Next& model);

/// Bytes of the states, and of the caches of S positions, for one sequence: in floats, as
/// Qwen3NextState keeps them, or with another size for the caches' elements.
std::size_t qwen3_next_state_bytes(const Qwen3NextConfig& config);
std::size_t qwen3_next_cache_bytes(const Qwen3NextConfig& config, std::size_t S,
                                   std::size_t number_bytes = sizeof(float));

/// A sequence: what each block keeps, RoPE's table, and memory for calls of up to `chunk` rows.
struct Qwen3NextState {
  std::vector<DeltaLayerState> states;  // [L], empty in blocks that attend
  std::vector<KvCache> caches;          // [L], empty in the others
  std::size_t length = 0;               // tokens so far
  RopeTable rope;                       // [S, R/2]
  std::size_t chunk;
  GroupedScratch attention;
  ExpertsScratch experts;

  /// For sequences of up to S tokens. Throws std::invalid_argument as expect_qwen3_next_config
  /// does, when S is above T_max, and when S or chunk is 0.
  Qwen3NextState(const Qwen3NextConfig& config, std::size_t S, std::size_t chunk = 64);
  /// Bytes of the states and of the caches, counted.
  std::size_t bytes() const;
};

/// The last norm's output for new tokens: [T, C]. The state must be one of this model's config.
/// Throws std::invalid_argument, before anything is computed, when there are no ids, for an id that
/// is not below V, and when the state has no room. It also throws when a router's scores or a key
/// are not finite; the state must not be used again then.
Tensor<2> qwen3_next_stream(std::span<const int> ids, const Qwen3Next& model,
                            Qwen3NextState& state);

/// The logits of new tokens: [T, V]. Throws as qwen3_next_stream does.
Tensor<2> qwen3_next_logits(std::span<const int> ids, const Qwen3Next& model,
                            Qwen3NextState& state);

}  // namespace t2t
