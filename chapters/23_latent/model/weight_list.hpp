// The list of a latent model's weights, once for all that goes through them: checking, drawing,
// counting, and reading a file.
//
// Names and shapes are those of llama.cpp's architecture deepseek2 (gguf-py/gguf/constants.py,
// MODEL_ARCH.DEEPSEEK2, and conversion/deepseek.py there). Two things differ here. All experts of a
// block are one tensor of the file, [E, rows, cols], and each is a Weight of its own here; and
// w_kvb is one matrix here, which newer files split (load_latent.hpp).
#pragma once

#include <fmt/core.h>

#include <cstddef>
#include <optional>
#include <string>

#include "08_block/block_weights.hpp"
#include "23_latent/model/latent_model.hpp"

namespace t2t {

struct LatentTensorInfo {
  std::string name;        // "blk.3.attn_norm.weight"
  std::size_t rows, cols;  // a vector has cols 1
  Role role;
  std::optional<std::size_t> expert = {};  // which expert of its block
};

/// One network's three matrices, "blk.3.ffn_gate" + ending and so on.
template <class Network, class Call>
void for_each_of_network(Network& network, const std::string& block, const std::string& ending,
                         std::size_t F, std::size_t C, std::optional<std::size_t> expert, Call f) {
  const auto name = [&](const char* part) { return block + part + ending + ".weight"; };
  f(LatentTensorInfo{name("ffn_gate"), F, C, Role::matrix, expert}, network.w_gate);
  f(LatentTensorInfo{name("ffn_up"), F, C, Role::matrix, expert}, network.w_up);
  f(LatentTensorInfo{name("ffn_down"), C, F, Role::into_stream, expert}, network.w_down);
}

/// The weights of attention, in the order of the struct.
template <class Weights, class Call>
void for_each_of_attention(Weights& w, const std::string& block, const LatentSettings& s, Call f) {
  const std::size_t q_width = s.H * s.query_width();
  const auto call = [&](const char* part, std::size_t rows, std::size_t cols, Role role, auto& x) {
    f(LatentTensorInfo{block + part + ".weight", rows, cols, role}, x);
  };
  if (s.Q > 0) {
    call("attn_q_a", s.Q, s.C, Role::matrix, w.w_qa);
    call("attn_q_a_norm", s.Q, 1, Role::gain, w.q_gain);
    call("attn_q_b", q_width, s.Q, Role::matrix, w.w_qb);
  } else {
    call("attn_q", q_width, s.C, Role::matrix, w.w_qb);
  }
  call("attn_kv_a_mqa", s.row_width(), s.C, Role::matrix, w.w_kva);
  call("attn_kv_a_norm", s.K, 1, Role::gain, w.kv_gain);
  call("attn_kv_b", s.H * (s.N + s.Dv), s.K, Role::matrix, w.w_kvb);
  call("attn_output", s.C, s.H * s.Dv, Role::into_stream, w.w_o);
}

/// Calls f(info, tensor) for each weight of the model: a Tensor<1>, a Tensor<2> of attention, or a
/// Weight; const if the model is. The blocks must have been made, L of them, and so must their
/// experts, of which it visits as many as there are. A bias that is empty is visited too.
template <class Model, class Call>
void for_each_latent_weight(Model& model, Call f) {
  const LatentConfig& config = model.config;
  const std::size_t C = config.attention.C;
  f(LatentTensorInfo{"token_embd.weight", config.V, C, Role::embedding}, model.embedding);
  for (std::size_t l = 0; l < config.L; ++l) {
    auto& block = model.blocks.at(l);
    const std::string prefix = fmt::format("blk.{}.", l);
    f(LatentTensorInfo{prefix + "attn_norm.weight", C, 1, Role::gain}, block.attention_gain);
    for_each_of_attention(block.attention, prefix, config.attention, f);
    f(LatentTensorInfo{prefix + "ffn_norm.weight", C, 1, Role::gain}, block.network_gain);
    if (!config.has_experts(l)) {
      for_each_of_network(block.network, prefix, "", config.F, C, {}, f);
      continue;
    }
    f(LatentTensorInfo{prefix + "ffn_gate_inp.weight", config.E, C, Role::router}, block.router);
    f(LatentTensorInfo{prefix + "exp_probs_b.bias", config.E, 1, Role::bias}, block.bias);
    for (std::size_t e = 0; e < block.experts.size(); ++e)
      for_each_of_network(block.experts[e], prefix, "_exps", config.F_expert, C, e, f);
    if (config.F_shared > 0)
      for_each_of_network(block.shared, prefix, "_shexp", config.F_shared, C, {}, f);
  }
  f(LatentTensorInfo{"output_norm.weight", C, 1, Role::gain}, model.final_gain);
  if (!config.tied) f(LatentTensorInfo{"output.weight", config.V, C, Role::embedding}, model.head);
}

}  // namespace t2t
