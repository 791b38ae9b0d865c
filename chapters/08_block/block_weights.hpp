// A block's tensors, and one list of them: whatever is done tensor by tensor (checking, counting,
// drawing, loading, saving, comparing) is a loop over for_each_tensor.
//
// Chapter 10 loads a model's weights into them, chapter 13 has gradients of the same shapes.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "07_swiglu/fast/feed_forward_weights.hpp"
#include "08_block/block_settings.hpp"
#include "08_block/norm.hpp"
#include "random.hpp"
#include "tensor.hpp"
#include "weight.hpp"

namespace t2t {

// [weights]
/// The block's weights, in the order of use: each sublayer reads the stream x, [T, C], and adds to
/// it. Members that the settings do not use stay empty.
struct BlockWeights {
  NormWeights attention_norm;  // [C]

  Weight w_q;     // [H·D, C]    queries
  Weight w_k;     // [G·D, C]    keys
  Weight w_v;     // [G·D, C]    values
  Tensor<1> b_q;  // [H·D]       biases, in GPT-2 and Qwen 2
  Tensor<1> b_k;  // [G·D]
  Tensor<1> b_v;  // [G·D]

  Weight w_o;     // [C, H·D]    output projection: its result is added to x
  Tensor<1> b_o;  // [C]         in GPT-2

  NormWeights feed_forward_norm;    // [C]
  FeedForwardWeights feed_forward;  // w_gate, w_up [F, C]; w_down [C, F] makes what is added to x
  // [/weights]

  // The norms of some models.
  NormWeights q_norm;                  // [D] for each head, in Qwen 3; [H·D] for all, in OLMoE
  NormWeights k_norm;                  // [D] or [G·D]
  NormWeights post_attention_norm;     // [C] of what is added, in Gemma 2 and 3
  NormWeights post_feed_forward_norm;  // [C]

  // Or, in a mixture of experts (chapter 14), E feed-forward networks and the router.
  Weight router;                            // [E, C]  its scores choose among the experts
  std::vector<FeedForwardWeights> experts;  // [E]
  FeedForwardWeights shared;                // the shared expert, which all tokens use, if any
  Weight shared_gate;                       // [1, C]
};

/// What a tensor is for. It decides the tensor's initial values.
enum class Role {
  gain,         // of a norm: 1
  bias,         // 0
  matrix,       // N(0, 1/inputs): inputs with an rms of about 1 give outputs with an rms of about 1
  router,       // a matrix; its scores choose experts, so it is not rounded to few bits
  into_stream,  // w_o and w_down, the residual projections: as for matrix, times residual_scale
  embedding,    // a table with a row per token: N(0, 0.02²)
  positions,    // a table with a row per position: N(0, 0.01²)
};

/// A tensor's name, shape and role.
struct TensorInfo {
  std::string_view name;   // "w_q", "attention_norm.gain"
  std::size_t rows, cols;  // both 0 if the settings leave it out; a vector has cols 1
  Role role;
  std::optional<std::size_t> layer = {};   // which of a model's blocks it belongs to
  std::optional<std::size_t> expert = {};  // which of the block's experts it belongs to
  bool shared = false;  // whether it belongs to the shared expert, which all tokens use

  std::size_t size() const { return rows * cols; }
};
/// "w_q", or "layer 3: w_q" in a model; "layer 3: expert 7: w_up"; "layer 3: shared: w_up".
std::string full_name(const TensorInfo& info);

/// Calls f(info, tensor) for each tensor of one feed-forward network of a block, of width F. If F
/// is 0, there is none, and every info has size 0.
template <class Network, class Call>
void for_each_tensor(Network& network, const BlockSettings& settings, std::size_t F, Call f) {
  const std::size_t C = settings.C;
  const bool gated = is_gated(settings.activation), biases = settings.biases == Biases::all;
  const auto matrix = [&](std::string_view name, bool used, std::size_t out, std::size_t in,
                          Role role, auto& w) {
    f(TensorInfo{name, F > 0 && used ? out : 0, F > 0 && used ? in : 0, role}, w);
  };
  matrix("w_gate", gated, F, C, Role::matrix, network.w_gate);
  matrix("w_up", true, F, C, Role::matrix, network.w_up);
  matrix("w_down", true, C, F, Role::into_stream, network.w_down);
  f(TensorInfo{"b_up", biases ? F : 0, 1, Role::bias}, network.b_up);
  f(TensorInfo{"b_down", biases && F > 0 ? C : 0, 1, Role::bias}, network.b_down);
}

/// Calls f(info, tensor) for each tensor of a block, in the order of use, also for those that the
/// settings leave out (info then has size 0), and for each of the experts that the weights have
/// room for. tensor is a Weight or a Tensor<1>, and const if weights is.
template <class Weights, class Call>
void for_each_tensor(Weights& weights, const BlockSettings& settings, Call f) {
  const std::size_t C = settings.C, D = settings.D;
  const std::size_t HD = settings.H * settings.D, GD = settings.G * settings.D;
  const bool layer_norm = settings.norm == Norm::layer;
  const bool head_norms = settings.head_norms, together = settings.heads_together;
  const bool post_norms = settings.norm_place == NormPlace::both;
  const bool qkv_biases = settings.biases != Biases::none, biases = settings.biases == Biases::all;
  const auto vector = [&](std::string_view name, bool there, std::size_t n, Role role, auto& x) {
    f(TensorInfo{name, there ? n : 0, 1, role}, x);
  };
  const auto matrix = [&](std::string_view name, bool there, std::size_t out, std::size_t in,
                          Role role, auto& w) {
    f(TensorInfo{name, there ? out : 0, there ? in : 0, role}, w);
  };
  const auto norm = [&](std::string_view gain, std::string_view bias, bool there, std::size_t n,
                        auto& of) {
    vector(gain, there, n, Role::gain, of.gain);
    vector(bias, there && layer_norm, n, Role::bias, of.bias);
  };

  norm("attention_norm.gain", "attention_norm.bias", true, C, weights.attention_norm);
  matrix("w_q", true, HD, C, Role::matrix, weights.w_q);
  matrix("w_k", true, GD, C, Role::matrix, weights.w_k);
  matrix("w_v", true, GD, C, Role::matrix, weights.w_v);
  vector("b_q", qkv_biases, HD, Role::bias, weights.b_q);
  vector("b_k", qkv_biases, GD, Role::bias, weights.b_k);
  vector("b_v", qkv_biases, GD, Role::bias, weights.b_v);
  norm("q_norm.gain", "q_norm.bias", head_norms, together ? HD : D, weights.q_norm);
  norm("k_norm.gain", "k_norm.bias", head_norms, together ? GD : D, weights.k_norm);
  matrix("w_o", true, C, HD, Role::into_stream, weights.w_o);
  vector("b_o", biases, C, Role::bias, weights.b_o);
  norm("post_attention_norm.gain", "post_attention_norm.bias", post_norms, C,
       weights.post_attention_norm);

  norm("feed_forward_norm.gain", "feed_forward_norm.bias", true, C, weights.feed_forward_norm);
  const std::size_t F_experts = settings.experts > 0 ? settings.F : 0;
  for_each_tensor(weights.feed_forward, settings, settings.F - F_experts, f);
  matrix("router", settings.experts > 0, settings.experts, C, Role::router, weights.router);
  for (std::size_t e = 0; e < weights.experts.size(); ++e)
    for_each_tensor(weights.experts[e], settings, F_experts, [&](TensorInfo info, auto& tensor) {
      info.expert = e;
      f(info, tensor);
    });
  for_each_tensor(weights.shared, settings, settings.shared, [&](TensorInfo info, auto& tensor) {
    info.shared = true;
    f(info, tensor);
  });
  matrix("shared_gate", settings.shared_gate, 1, C, Role::router, weights.shared_gate);
  norm("post_feed_forward_norm.gain", "post_feed_forward_norm.bias", post_norms, C,
       weights.post_feed_forward_norm);
}

/// Throws std::invalid_argument, naming the tensor and both shapes, unless it has the shape given
/// in info.
void expect_fits(const TensorInfo& info, const Tensor<1>& x);
void expect_fits(const TensorInfo& info, const Weight& w);
/// The same for all tensors of a block, and for the number of its experts. A tensor that the block
/// would ignore is refused too.
void expect_weights(const BlockWeights& weights, const BlockSettings& settings);

/// Weights for these settings whose tensors are still empty, with one entry for each expert: to be
/// filled tensor by tensor, for instance from a checkpoint.
BlockWeights room_for(const BlockSettings& settings);

/// Gives a tensor its role's initial values. residual_scale multiplies those of role
/// into_stream.
void draw_tensor(const TensorInfo& info, Random& random, float residual_scale, Tensor<1>& x);
void draw_tensor(const TensorInfo& info, Random& random, float residual_scale, Weight& w);
/// Draws all tensors of a block. Throws as expect_settings does.
BlockWeights draw_block(const BlockSettings& settings, Random& random,
                        float residual_scale = 1);  // GPT-2 uses 1/√(2·L)

/// How many parameters all its tensors hold: gains, biases and matrices.
std::size_t parameter_count(const BlockWeights& weights);

}  // namespace t2t
