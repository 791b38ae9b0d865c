// The list of Qwen3-Next's weights, once for all that goes through them: checking, drawing,
// counting, and reading a file.
//
// Names and shapes are those of llama.cpp's architecture qwen3next (gguf-py/gguf/constants.py,
// MODEL_ARCH.QWEN3NEXT, and conversion/qwen.py there). All experts of a block are one tensor of the
// file, and each is a Weight of its own here. The delta layers are not in the list: files store
// them in another form (load_qwen3_next.hpp).
#pragma once

#include "23_latent/model/weight_list.hpp"
#include "24_delta_rule/qwen3_next/qwen3_next.hpp"

namespace t2t {

template <class Weights, class Call>
void for_each_of_gated_attention(Weights& w, const std::string& block,
                                 const GatedAttentionSettings& s, Call f) {
  const auto call = [&](const char* part, std::size_t rows, std::size_t cols, Role role, auto& x) {
    f(LatentTensorInfo{block + part + ".weight", rows, cols, role}, x);
  };
  call("attn_q", 2 * s.H * s.D, s.C, Role::matrix, w.w_q);
  call("attn_k", s.G * s.D, s.C, Role::matrix, w.w_k);
  call("attn_v", s.G * s.D, s.C, Role::matrix, w.w_v);
  call("attn_q_norm", s.D, 1, Role::gain, w.q_gain);
  call("attn_k_norm", s.D, 1, Role::gain, w.k_gain);
  call("attn_output", s.C, s.H * s.D, Role::into_stream, w.w_o);
}

/// Calls f(info, tensor) for each weight but those of delta layers: a Tensor<1> or a Weight; const
/// if the model is. The blocks must have been made, L of them, and so must their experts, of which
/// it visits as many as there are.
template <class Model, class Call>
void for_each_qwen3_next_weight(Model& model, Call f) {
  const Qwen3NextConfig& config = model.config;
  const std::size_t C = config.attention.C;
  f(LatentTensorInfo{"token_embd.weight", config.V, C, Role::embedding}, model.embedding);
  for (std::size_t l = 0; l < config.L; ++l) {
    auto& block = model.blocks.at(l);
    const std::string prefix = fmt::format("blk.{}.", l);
    const auto vector = [&](const char* part, std::size_t rows, auto& x) {
      f(LatentTensorInfo{prefix + part + ".weight", rows, 1, Role::gain}, x);
    };
    vector("attn_norm", C, block.mixer_gain);
    if (config.attends(l))
      for_each_of_gated_attention(block.attention, prefix, config.attention, f);
    vector("post_attention_norm", C, block.network_gain);
    f(LatentTensorInfo{prefix + "ffn_gate_inp.weight", config.E, C, Role::router}, block.router);
    for (std::size_t e = 0; e < block.experts.size(); ++e)
      for_each_of_network(block.experts[e], prefix, "_exps", config.F, C, e, f);
    f(LatentTensorInfo{prefix + "ffn_gate_inp_shexp.weight", 1, C, Role::router},
      block.shared_gate);
    for_each_of_network(block.shared, prefix, "_shexp", config.F_shared, C, {}, f);
  }
  f(LatentTensorInfo{"output_norm.weight", C, 1, Role::gain}, model.final_gain);
  if (!config.tied) f(LatentTensorInfo{"output.weight", config.V, C, Role::embedding}, model.head);
}

}  // namespace t2t
