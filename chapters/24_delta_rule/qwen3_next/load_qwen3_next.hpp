// Reads Qwen3-Next from a GGUF file of the architecture qwen3next.
//
//   qwen3next.                          here
//   embedding_length, block_count       C, L
//   full_attention_interval             every; 4 if it is missing
//   attention.head_count, _kv           H, G of attention; attention.key_length: its D
//   rope.dimension_count                R
//   ssm.time_step_rank, group_count     H, G of the delta layers
//   ssm.state_size                      their D; ssm.inner_size is their H·Dv
//   ssm.conv_kernel                     W
//   expert_count, expert_used_count     E, k; expert_feed_forward_length: F
//   expert_shared_feed_forward_length   F_shared
//
// Five things are not what their names say. ssm_a holds −e^a, and has no ending ".weight". To all
// norms' gains but ssm_norm's the converter has added the 1 that the model adds. The norm before
// the experts is called post_attention_norm. ssm_ba holds, for each head of q and k, the rows of β
// of its H/G heads of v and then those of the decay. Old files have q, k, v and z in one ssm_in,
// grouped in the same way; newer ones have attn_qkv, all heads' q, then k, then v, and attn_gate.
// The converter is ggml-org/llama.cpp's conversion/qwen.py.
#pragma once

#include "10_pretrained/model/load_model.hpp"
#include "24_delta_rule/qwen3_next/qwen3_next.hpp"

namespace t2t {

/// The sizes and choices in the metadata. Throws std::runtime_error, naming the file and the key,
/// for another architecture, for a value that is missing, out of range or not built here (a scaling
/// of RoPE, a list of the layers that attend, a factor on the experts' weights), and for sizes that
/// expect_qwen3_next_config refuses.
Qwen3NextConfig read_qwen3_next_config(const GgufFile& file);

/// Parts of rows that lie in `groups` groups, each with sizes[0] rows of part 0, then sizes[1] of
/// part 1 …: part i is [groups·sizes[i], C], in the order of the groups. Throws
/// std::invalid_argument unless x has so many rows.
std::vector<Tensor<2>> parts_of_groups(const Tensor<2>& x,  // [groups·Σ sizes, C]
                                       std::size_t groups, const std::vector<std::size_t>& sizes);

/// The weights of a delta layer. `block` is "blk.3.". Throws std::runtime_error, naming the file
/// and the tensor, when one is missing or has another shape, and when an element of ssm_a is not a
/// finite number of at most 0.
DeltaLayerWeights read_delta_layer(const GgufFile& file, const std::string& block,
                                   const DeltaLayerSettings& settings);

/// Throws std::runtime_error, naming the file and the tensor, when one is missing or has another
/// shape, then with both shapes, and for a tensor that the config has no use for.
void expect_qwen3_next_tensors(const GgufFile& file, const Qwen3NextConfig& config);

/// Config and weights. The matrices become floats unless `make` is given; those of the delta layers
/// and the routers always do. Throws as the functions above do, and before it takes more memory
/// than is free.
Qwen3Next read_qwen3_next(const GgufFile& file, const MakeWeight& make = {});

}  // namespace t2t
