// Reads the sizes and choices of DeepSeek-V2 and V3 from the metadata of a GGUF file, whose
// architecture is called deepseek2 for both.
//
//   deepseek2.                          here
//   embedding_length, block_count       C, L
//   feed_forward_length                 F, of a dense block
//   leading_dense_block_count           dense
//   attention.head_count                H
//   attention.kv_lora_rank, q_lora_rank K, Q; no q_lora_rank: Q = 0 (V2-Lite)
//   attention.key_length_mla            N + R, in older files attention.key_length
//   attention.value_length_mla          Dv, in older files attention.value_length
//   rope.dimension_count                R
//   rope.scaling.*                      YaRN's frequencies, and m from yarn_log_multiplier, which
//                                       is 0.1·mscale_all_dim
//   expert_count, expert_used_count     E, k
//   expert_feed_forward_length          F_expert; times expert_shared_count: F_shared
//   expert_group_count, _used_count     groups, open
//   expert_weights_scale, _norm         scale, normalized
//   expert_gating_func                  1 or missing: softmax, 2: sigmoid
//
// In newer files attention.key_length is K + R, and the cache that llama.cpp makes has one head of
// it. RoPE's pairs are neighbours: the converter permutes nothing. The keys are those of
// ggml-org/llama.cpp's conversion/deepseek.py and src/llama-arch.cpp; that the multiplier holds a
// tenth is noted in its pull request 17945.
#pragma once

#include "10_pretrained/file/gguf.hpp"
#include "23_latent/model/latent_config.hpp"

namespace t2t {

/// Throws std::runtime_error, naming the file and the key, for another architecture, for a value
/// that is missing, out of range or not built here, and for sizes that expect_latent_config
/// refuses. Not built: scalings of RoPE other than YaRN's, a factor on cos and sin
/// (yarn_attn_factor), and attention.temperature_scale.
LatentConfig read_latent_config(const GgufFile& file);

}  // namespace t2t
