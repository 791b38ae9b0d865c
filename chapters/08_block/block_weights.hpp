// A block's tensors by name, and the one list of them: what is checked, counted, drawn, loaded,
// saved or compared tensor by tensor is a loop over for_each_tensor.
//
// Chapter 10 loads weights into them, 13 has gradients of the same shapes.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "07_swiglu/feed_forward.hpp"
#include "08_block/block_settings.hpp"
#include "08_block/norm.hpp"
#include "random.hpp"
#include "tensor.hpp"
#include "weight.hpp"

namespace t2t {

/// Read from the top: it is the block's diagram. x [T, C] flows past; each part reads x and adds
/// to it. What the settings leave out stays empty.
struct BlockWeights {
  NormWeights attention_norm;  // [C]

  Weight w_q;          // [H·D, C]    what a token asks
  Weight w_k;          // [G·D, C]    what it is found by
  Weight w_v;          // [G·D, C]    what it says
  Tensor<1> b_q;       // [H·D]       biases: GPT-2's and Qwen 2's, else empty
  Tensor<1> b_k;       // [G·D]
  Tensor<1> b_v;       // [G·D]
  NormWeights q_norm;  // [D]         of each head: Qwen 3's, else empty
  NormWeights k_norm;  // [D]

  Weight w_o;     // [C, H·D]    the heads' answers, added to x
  Tensor<1> b_o;  // [C]         GPT-2's

  NormWeights feed_forward_norm;  // [C]

  FeedForwardWeights feed_forward;  // w_gate, w_up [F, C], w_down [C, F], added to x
};

/// What a tensor is for, which decides its first numbers.
enum class Role {
  gain,         // of a norm: 1
  bias,         // 0
  matrix,       // N(0, 1/inputs): inputs of size about 1 give outputs of size about 1
  into_stream,  // w_o and w_down, whose result is added to the stream: the same, times a scale
  embedding,    // a table with a row a token: N(0, 0.02²)
  positions,    // a table with a row a position: N(0, 0.01²)
};

/// A tensor's name, shape and role.
struct TensorInfo {
  std::string_view name;   // "w_q", "attention_norm.gain"
  std::size_t rows, cols;  // 0 of what the settings leave out; a vector has cols 1
  Role role;
  std::optional<std::size_t> layer = {};  // which of a model's blocks it belongs to

  std::size_t size() const { return rows * cols; }
};
/// "w_q", or "layer 3: w_q" in a model.
std::string full_name(const TensorInfo& info);

/// The one list. Calls f(info, tensor) for each tensor of a block, in the order of the diagram,
/// also for those that the settings leave out (their sizes are 0). tensor is a Weight or a
/// Tensor<1>, const if weights is.
template <class Weights, class Call>
void for_each_tensor(Weights& weights, const BlockSettings& settings, Call f) {
  const std::size_t C = settings.C, D = settings.D, F = settings.F;
  const std::size_t HD = settings.H * settings.D, GD = settings.G * settings.D;
  const bool layer_norm = settings.norm == Norm::layer, head_norms = settings.head_norms;
  const bool qkv_biases = settings.biases != Biases::none, biases = settings.biases == Biases::all;
  const bool network = F > 0, gate = network && is_gated(settings.activation);
  const auto vector = [&](std::string_view name, bool there, std::size_t n, Role role, auto& x) {
    f(TensorInfo{name, there ? n : 0, 1, role}, x);
  };
  const auto matrix = [&](std::string_view name, bool there, std::size_t out, std::size_t in,
                          Role role, auto& w) {
    f(TensorInfo{name, there ? out : 0, there ? in : 0, role}, w);
  };

  vector("attention_norm.gain", true, C, Role::gain, weights.attention_norm.gain);
  vector("attention_norm.bias", layer_norm, C, Role::bias, weights.attention_norm.bias);
  matrix("w_q", true, HD, C, Role::matrix, weights.w_q);
  matrix("w_k", true, GD, C, Role::matrix, weights.w_k);
  matrix("w_v", true, GD, C, Role::matrix, weights.w_v);
  vector("b_q", qkv_biases, HD, Role::bias, weights.b_q);
  vector("b_k", qkv_biases, GD, Role::bias, weights.b_k);
  vector("b_v", qkv_biases, GD, Role::bias, weights.b_v);
  vector("q_norm.gain", head_norms, D, Role::gain, weights.q_norm.gain);
  vector("q_norm.bias", head_norms && layer_norm, D, Role::bias, weights.q_norm.bias);
  vector("k_norm.gain", head_norms, D, Role::gain, weights.k_norm.gain);
  vector("k_norm.bias", head_norms && layer_norm, D, Role::bias, weights.k_norm.bias);
  matrix("w_o", true, C, HD, Role::into_stream, weights.w_o);
  vector("b_o", biases, C, Role::bias, weights.b_o);

  vector("feed_forward_norm.gain", true, C, Role::gain, weights.feed_forward_norm.gain);
  vector("feed_forward_norm.bias", layer_norm, C, Role::bias, weights.feed_forward_norm.bias);
  matrix("w_gate", gate, F, C, Role::matrix, weights.feed_forward.w_gate);
  matrix("w_up", network, F, C, Role::matrix, weights.feed_forward.w_up);
  matrix("w_down", network, C, F, Role::into_stream, weights.feed_forward.w_down);
  vector("b_up", network && biases, F, Role::bias, weights.feed_forward.b_up);
  vector("b_down", network && biases, C, Role::bias, weights.feed_forward.b_down);
}

/// Throws std::invalid_argument, naming the tensor and both shapes, unless it has the size that
/// info tells.
void expect_fits(const TensorInfo& info, const Tensor<1>& x);
void expect_fits(const TensorInfo& info, const Weight& w);
/// The same of all tensors. A tensor that the block would ignore is refused too.
void expect_weights(const BlockWeights& weights, const BlockSettings& settings);

/// Gives a tensor the numbers that its role begins with; those into the stream times
/// residual_scale.
void draw_tensor(const TensorInfo& info, Random& random, float residual_scale, Tensor<1>& x);
void draw_tensor(const TensorInfo& info, Random& random, float residual_scale, Weight& w);
/// All tensors of a block, as their roles begin. Throws as expect_settings does.
BlockWeights draw_block(const BlockSettings& settings, Random& random,
                        float residual_scale = 1);  // GPT-2 takes 1/√(2·L)

/// Numbers in all its tensors: gains, biases, matrices.
std::size_t parameter_count(const BlockWeights& weights);

}  // namespace t2t
