// The sizes and choices of a model whose blocks attend to latents, as DeepSeek-V2 and V3 do.
//
//   embedding [V, C], L blocks, a norm, and a head [V, C]
//   x = x + attention(norm(x))       attention: latent_attention.hpp
//   x = x + network(norm(x))         one network in the first `dense` blocks, then E experts, of
//                                    which a token uses k, beside a shared network for all tokens
//
// latent_model.hpp runs such a model, and load_latent.hpp reads it from a file.
#pragma once

#include <cstddef>

#include "03_rope/rope.hpp"
#include "23_latent/latent_attention.hpp"
#include "23_latent/model/group_router.hpp"

namespace t2t {

struct LatentConfig {
  LatentSettings attention;  // of every block; its C and eps are also those of the model's norms
  std::size_t L, V, T_max;
  std::size_t F;             // of the network of a dense block
  std::size_t dense;         // how many blocks have one network, from the first block on
  std::size_t E = 0;         // experts of every other block; 0 if all blocks are dense
  std::size_t F_expert = 0;  // of each expert
  std::size_t F_shared = 0;  // of the network beside the experts; 0: none
  GroupedRouting routing = {};
  Frequencies frequencies = {};  // RoPE's, [R/2]: they may be stretched
  bool tied = false;             // whether the head is the embedding

  bool has_experts(std::size_t layer) const { return layer >= dense; }
};

/// Throws std::invalid_argument, naming the value, as expect_latent does, when L, V, T_max or a
/// needed width is 0, when dense is above L, unless there are R/2 frequencies above 0, and, if a
/// block has experts, as expect_grouped does.
void expect_latent_config(const LatentConfig& config);

}  // namespace t2t
