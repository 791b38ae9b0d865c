#include "18_experiments/encoders/encoder_decoder_backward.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <stdexcept>

#include "02_normalization/rms_norm.hpp"
#include "07_swiglu/fast/activation_rows.hpp"
#include "13_training/attention/attention_backward.hpp"
#include "13_training/backward/activation_backward.hpp"
#include "13_training/backward/cross_entropy.hpp"
#include "13_training/backward/embedding_backward.hpp"
#include "13_training/backward/linear_backward.hpp"
#include "13_training/backward/norm_backward.hpp"
#include "linalg.hpp"
#include "shapes.hpp"

namespace t2t {

CrossGradients multi_head_backward(const Tensor<2>& x, const Tensor<2>& memory,
                                   const AttentionWeights& weights, std::size_t H, Mask mask,
                                   const Tensor<2>& dout, AttentionWeights& gradients) {
  expect_shape("dout", dout, {x.shape(0), x.shape(1)});
  const Tensor<2> q = matmul_bt(x, weights.w_q);       // [T, C]
  const Tensor<2> k = matmul_bt(memory, weights.w_k);  // [S, C]
  const Tensor<2> v = matmul_bt(memory, weights.w_v);  // [S, C]
  const Tensor<3> queries = split_heads(q, H), keys = split_heads(k, H), values = split_heads(v, H);
  Tensor<3> heads = xt::zeros_like(queries);  // [H, T, D]
  for (std::size_t h = 0; h < H; ++h)
    xt::view(heads, h) =
        attention(xt::view(queries, h), xt::view(keys, h), xt::view(values, h), mask);

  add_weight_gradient(dout, merge_heads(heads), gradients.w_o);
  const AttentionGradients d = attention_backward(q, k, v, H, H, mask, matmul(dout, weights.w_o));
  add_weight_gradient(d.q, x, gradients.w_q);
  add_weight_gradient(d.k, memory, gradients.w_k);
  add_weight_gradient(d.v, memory, gradients.w_v);
  return {matmul(d.q, weights.w_q), matmul(d.k, weights.w_k) + matmul(d.v, weights.w_v)};
}

static Tensor<2> network_backward(const Tensor<2>& x, const FeedForwardWeights& weights,
                                  Activation activation, const Tensor<2>& dy,
                                  FeedForwardWeights& gradients) {
  const Tensor<2> up = matmul_bt(x, weights.w_up.floats());  // [T, F]
  Tensor<2> hidden = up;
  activate_rows(activation, hidden, hidden);
  add_weight_gradient(dy, hidden, gradients.w_down.floats());
  const Tensor<2> dup = matmul(dy, weights.w_down.floats()) * activation_derivative(activation, up);
  add_weight_gradient(dup, x, gradients.w_up.floats());
  return matmul(dup, weights.w_up.floats());
}

/// A stream on its way back through its sublayers, each x + sublayer(norm(x)).
struct Stream {
  const EncoderDecoderConfig& config;
  NormInputs kept = {};  // what each norm read; the last one is passed first

  /// The last norm again.
  Tensor<2> normed(const Tensor<1>& gain) const { return rms_norm(kept.back(), gain, config.eps); }
  /// Adds the gradient that comes through the last norm to dx, and is done with the norm.
  void norm_backward(const Tensor<1>& gain, const Tensor<2>& dnormed, Tensor<2>& dx,
                     Tensor<1>& dgain) {
    const NormGradients d =
        t2t::norm_backward(kept.back(), {gain, {}}, Norm::rms, config.eps, dnormed);
    dx += d.x;
    // Element by element: += of whole tensors may move one, and the optimizer has a view of it.
    for (std::size_t c = 0; c < dgain.size(); ++c) dgain(c) += d.weights.gain(c);
    kept.pop_back();
  }
};

static void embedding_backward(std::span<const int> ids, const Tensor<2>& dx,
                               EncoderDecoder& gradients) {
  const float root = std::sqrt(float(gradients.config.C));
  add_embedding_gradient(ids, Tensor<2>(root * dx), gradients.embedding);
}

/// The sublayer that all blocks end with.
template <class AnyBlock>
static void add_network_backward(Stream& stream, const AnyBlock& block, Tensor<2>& dx,
                                 AnyBlock& gradients) {
  const Tensor<2> dnormed = network_backward(stream.normed(block.network_norm), block.network,
                                             stream.config.activation, dx, gradients.network);
  stream.norm_backward(block.network_norm, dnormed, dx, gradients.network_norm);
}

/// The sublayer that all blocks begin with.
template <class AnyBlock>
static void add_attention_backward(Stream& stream, const AnyBlock& block, Mask mask, Tensor<2>& dx,
                                   AnyBlock& gradients) {
  const Tensor<2> normed = stream.normed(block.self_norm);
  const CrossGradients d =
      multi_head_backward(normed, normed, block.self, stream.config.H, mask, dx, gradients.self);
  stream.norm_backward(block.self_norm, d.x + d.memory, dx, gradients.self_norm);
}

static void add_cross_backward(Stream& stream, const DecoderBlock& block, const Tensor<2>& encoded,
                               Tensor<2>& dx, Tensor<2>& dencoded, DecoderBlock& gradients) {
  const CrossGradients d =
      multi_head_backward(stream.normed(block.cross_norm), encoded, block.cross, stream.config.H,
                          Mask::none, dx, gradients.cross);
  dencoded += d.memory;
  stream.norm_backward(block.cross_norm, d.x, dx, gradients.cross_norm);
}

static void expect_trained(const EncoderDecoder& model) {
  if (is_gated(model.config.activation))
    throw std::invalid_argument(
        "the model to train: wanted networks without a gate, got gated ones");
  const auto plain = [](const auto& block) {
    return block.network.b_up.size() + block.network.b_down.size() == 0;
  };
  if (!std::ranges::all_of(model.encoder, plain) || !std::ranges::all_of(model.decoder, plain))
    throw std::invalid_argument("the model to train: wanted networks without biases");
}

double pair_loss(const EncoderDecoder& model, const TextPair& pair, float scale,
                 EncoderDecoder* gradients) {
  expect_trained(model);
  Stream source{model.config}, target{model.config};
  const Tensor<2> encoded = encode(pair.source, model, &source.kept);    // [S, C]
  Tensor<2> logits = decode(pair.target, encoded, model, &target.kept);  // [T, V]
  std::vector<double> losses(pair.next.size());
  const double loss = cross_entropy_rows(logits, pair.next, scale, losses);
  if (!gradients) return loss;

  add_weight_gradient(logits, target.normed(model.decoder_norm), gradients->embedding);
  Tensor<2> dy = xt::zeros_like(target.kept.back()), dx = xt::zeros_like(encoded);
  target.norm_backward(model.decoder_norm, matmul(logits, model.embedding), dy,
                       gradients->decoder_norm);
  Tensor<2> dencoded = xt::zeros_like(encoded);
  for (std::size_t l = model.config.L; l-- > 0;) {
    const DecoderBlock& block = model.decoder[l];
    add_network_backward(target, block, dy, gradients->decoder[l]);
    add_cross_backward(target, block, encoded, dy, dencoded, gradients->decoder[l]);
    add_attention_backward(target, block, Mask::causal, dy, gradients->decoder[l]);
  }
  source.norm_backward(model.encoder_norm, dencoded, dx, gradients->encoder_norm);
  for (std::size_t l = model.config.L; l-- > 0;) {
    add_network_backward(source, model.encoder[l], dx, gradients->encoder[l]);
    add_attention_backward(source, model.encoder[l], Mask::none, dx, gradients->encoder[l]);
  }
  embedding_backward(pair.target, dy, *gradients);
  embedding_backward(pair.source, dx, *gradients);
  return loss;
}

/// The names of a block's tensors.
struct BlockNames {
  std::string_view norm, w_q, w_k, w_v, w_o;
};
constexpr BlockNames encoder_names{"encoder.norm", "encoder.w_q", "encoder.w_k", "encoder.w_v",
                                   "encoder.w_o"};
constexpr BlockNames decoder_names{"decoder.norm", "decoder.w_q", "decoder.w_k", "decoder.w_v",
                                   "decoder.w_o"};
constexpr BlockNames cross_names{"cross.norm", "cross.w_q", "cross.w_k", "cross.w_v", "cross.w_o"};

/// Calls f(info, tensor) for each tensor.
template <class F>
static void for_each_tensor(EncoderDecoder& model, F f) {
  using Layer = std::optional<std::size_t>;
  const auto gain = [&](std::string_view name, Layer l, Tensor<1>& x) {
    f(TensorInfo{name, x.size(), 1, Role::gain, l}, x);
  };
  const auto matrix = [&](std::string_view name, Layer l, Tensor<2>& x, Role role = Role::matrix) {
    f(TensorInfo{name, x.shape(0), x.shape(1), role, l}, x);
  };
  const auto attention = [&](const BlockNames& names, Layer l, Tensor<1>& norm,
                             AttentionWeights& w) {
    gain(names.norm, l, norm);
    matrix(names.w_q, l, w.w_q), matrix(names.w_k, l, w.w_k);
    matrix(names.w_v, l, w.w_v), matrix(names.w_o, l, w.w_o);
  };
  const auto network = [&](Layer l, Tensor<1>& norm, FeedForwardWeights& w) {
    gain("network_norm", l, norm);
    matrix("w_up", l, w.w_up.floats()), matrix("w_down", l, w.w_down.floats());
  };
  matrix("embedding", {}, model.embedding, Role::embedding);
  for (std::size_t l = 0; l < model.encoder.size(); ++l) {
    EncoderBlock& block = model.encoder[l];
    attention(encoder_names, l, block.self_norm, block.self);
    network(l, block.network_norm, block.network);
  }
  gain("encoder_norm", {}, model.encoder_norm);
  for (std::size_t l = 0; l < model.decoder.size(); ++l) {
    DecoderBlock& block = model.decoder[l];
    attention(decoder_names, l, block.self_norm, block.self);
    attention(cross_names, l, block.cross_norm, block.cross);
    network(l, block.network_norm, block.network);
  }
  gain("decoder_norm", {}, model.decoder_norm);
}

EncoderDecoder zeros_like(const EncoderDecoder& model) {
  EncoderDecoder zeros = model;
  for_each_tensor(zeros, [](const TensorInfo&, auto& x) { x.fill(0); });
  return zeros;
}

std::vector<ListedTensor> tensors_of(EncoderDecoder& model) {
  std::vector<ListedTensor> list;
  for_each_tensor(model, [&](const TensorInfo& info, auto& x) {
    list.push_back({info, Row(x.data(), x.size())});
  });
  return list;
}

}  // namespace t2t
