#include "24_delta_rule/layer/delta_layer_backward.hpp"

#include <algorithm>
#include <cmath>

#include "02_normalization/rms_norm.hpp"
#include "06_gqa/grouped_query_attention.hpp"
#include "13_training/backward/linear_backward.hpp"
#include "13_training/backward/norm_backward.hpp"
#include "24_delta_rule/backward/chunks_backward.hpp"
#include "24_delta_rule/chunks/delta_chunks.hpp"
#include "24_delta_rule/layer/inputs_backward.hpp"
#include "24_delta_rule/layer/short_convolution.hpp"
#include "linalg.hpp"
#include "shapes.hpp"

namespace t2t {

HeadRule delta_head(const DeltaLayerSettings& settings) {
  expect_delta_layer(settings);
  const Tensor<2> none = xt::zeros<float>({settings.D, settings.Dv});  // [D, Dv]
  return {
      [none, chunk = settings.chunk](const DeltaTokens& tokens) {
        Tensor<2> state = none;
        return delta_chunks(tokens, StateRule::correct, chunk, state);
      },
      [none, chunk = settings.chunk](const DeltaTokens& tokens, const Tensor<2>& dout) {
        return delta_chunks_backward(tokens, StateRule::correct, chunk, none, dout, none).tokens;
      }};
}

DeltaLayerWeights zeros_like(const DeltaLayerWeights& weights) {
  DeltaLayerWeights zeros = weights;
  for (Tensor<2>* x :
       {&zeros.w_qkv, &zeros.conv, &zeros.w_beta, &zeros.w_gate, &zeros.w_z, &zeros.w_o})
    x->fill(0);
  for (Tensor<1>* x : {&zeros.a, &zeros.b, &zeros.gain}) x->fill(0);
  return zeros;
}

Tensor<2> delta_layer_pass(const Tensor<2>& x, const DeltaLayerWeights& weights,
                           const DeltaLayerSettings& settings, const HeadRule& rule,
                           DeltaLayerPass& kept) {
  expect_delta_call(x, weights, settings);
  const std::size_t T = x.shape(0), H = settings.H, Dv = settings.Dv;
  kept = {matmul_bt(x, weights.w_qkv), {}, {}, matmul_bt(x, weights.w_z), empty(T, H * Dv)};
  Tensor<2> before = xt::zeros<float>({settings.W - 1, settings.channels()});
  const Tensor<2> qkv = short_convolution(kept.projected, weights.conv, before);
  for (std::size_t h = 0; h < H; ++h) {
    kept.tokens.push_back(delta_tokens(x, qkv, weights, settings, h));
    kept.o.push_back(rule.forward(kept.tokens.back()));
    const Tensor<2> z = copy_of(ConstMatrix(kept.z).head(h, Dv));  // [T, Dv]
    xt::view(kept.heads, xt::all(), xt::range(h * Dv, h * Dv + Dv)) =
        rms_norm(kept.o.back(), weights.gain, settings.eps) * z / (1 + xt::exp(-z));
  }
  return matmul_bt(kept.heads, weights.w_o);
}

/// The gradients of what the heads are made of.
struct HeadGradients {
  Tensor<2> qkv;         // [T, 2·G·D+H·Dv], after the convolution
  Tensor<2> z;           // [T, H·Dv]
  Tensor<2> beta, gate;  // [T, H], of the sums x·W_βᵀ and x·W_gᵀ
};

// [gate]
/// Back through head h's norm and gate: writes its part of dz, and returns the gradient of o.
static Tensor<2> back_through_gate(const DeltaLayerPass& kept, const Tensor<1>& gain, float eps,
                                   std::size_t h, ConstMatrix dheads, Matrix dz, Tensor<1>& dgain) {
  const std::size_t T = dheads.rows, Dv = dheads.cols;
  const Tensor<2> normed = rms_norm(kept.o[h], gain, eps);  // [T, Dv]
  const ConstMatrix z = ConstMatrix(kept.z).head(h, Dv);    // [T, Dv]
  Tensor<2> dnormed = empty(T, Dv);                         // [T, Dv]
  for (std::size_t t = 0; t < T; ++t)
    for (std::size_t e = 0; e < Dv; ++e) {
      const float at = z.row(t)[e], sigma = 1 / (1 + std::exp(-at)), dy = dheads.row(t)[e];
      dnormed(t, e) = dy * at * sigma;
      dz.row(t)[e] = dy * normed(t, e) * sigma * (1 + at * (1 - sigma));
    }
  const NormGradients d = norm_backward(kept.o[h], {gain, {}}, Norm::rms, eps, dnormed);
  // In place: an optimizer may hold views of the gradients.
  for (std::size_t e = 0; e < Dv; ++e) dgain(e) += d.weights.gain(e);
  return d.x;
}
// [/gate]

// [tokens]
/// Back from head h's tokens to the convolution's channels and to the sums of β and g. Heads that
/// share a query and a key add up their gradients.
static void back_through_tokens(const Tensor<2>& qkv, const DeltaTokens& tokens,
                                const DeltaTokens& d, const DeltaLayerWeights& weights,
                                const DeltaLayerSettings& settings, std::size_t h,
                                HeadGradients& to, DeltaLayerWeights& gradients) {
  const std::size_t G = settings.key_heads(), group = group_of(h, settings.H, G);
  const std::size_t D = settings.D, Dv = settings.Dv;
  const ConstMatrix all = qkv;
  const Matrix dqkv = to.qkv;
  const Tensor<2> dq = d.q / std::sqrt(float(D));
  add_rows(unit_rows_backward(all.head(group, D), dq), dqkv.head(group, D));
  add_rows(unit_rows_backward(all.cols_from((G + group) * D, D), d.k),
           dqkv.cols_from((G + group) * D, D));
  add_rows(d.v, dqkv.cols_from(2 * G * D + h * Dv, Dv));

  // g = −e^a·softplus(s), and softplus′(s) = σ(s) = 1 − e^(−softplus(s)).
  const float rate = std::exp(weights.a(h));
  for (std::size_t t = 0; t < tokens.T(); ++t) {
    const float beta = tokens.beta(t), g = tokens.g(t);
    to.beta(t, h) = d.beta(t) * beta * (1 - beta);
    to.gate(t, h) = d.g(t) * rate * std::expm1(g / rate);
    gradients.a(h) += d.g(t) * g;
    gradients.b(h) += to.gate(t, h);
  }
}
// [/tokens]

/// From the gradients of four products with x to that of x, and to those of the weights.
static Tensor<2> back_through_projections(const Tensor<2>& x, const Tensor<2>& dprojected,
                                          const HeadGradients& d, const DeltaLayerWeights& weights,
                                          DeltaLayerWeights& gradients) {
  add_weight_gradient(dprojected, x, gradients.w_qkv);
  add_weight_gradient(d.z, x, gradients.w_z);
  add_weight_gradient(d.beta, x, gradients.w_beta);
  add_weight_gradient(d.gate, x, gradients.w_gate);
  Tensor<2> dx = matmul(dprojected, weights.w_qkv);  // [T, C]
  add_input_gradient(d.z, weights.w_z, dx);
  add_input_gradient(d.beta, weights.w_beta, dx);
  add_input_gradient(d.gate, weights.w_gate, dx);
  return dx;
}

// [layer]
Tensor<2> delta_layer_backward(const Tensor<2>& x, const DeltaLayerWeights& weights,
                               const DeltaLayerSettings& settings, const HeadRule& rule,
                               const DeltaLayerPass& kept, const Tensor<2>& dy,
                               DeltaLayerWeights& gradients) {
  expect_delta_call(x, weights, settings);
  expect_delta_call(x, gradients, settings);
  const std::size_t T = x.shape(0), H = settings.H, Dv = settings.Dv;
  expect_shape("dy", dy, {T, settings.C});
  expect_shape("projected", kept.projected, {T, settings.channels()});
  expect(kept.tokens.size() == H && kept.o.size() == H, "heads that were kept", "H",
         kept.tokens.size());
  add_weight_gradient(dy, kept.heads, gradients.w_o);
  const Tensor<2> dheads = matmul(dy, weights.w_o);  // [T, H·Dv]

  Tensor<2> before = xt::zeros<float>({settings.W - 1, settings.channels()});
  const Tensor<2> qkv = short_convolution(kept.projected, weights.conv, before);
  HeadGradients d{xt::zeros<float>({T, settings.channels()}), empty(T, H * Dv), empty(T, H),
                  empty(T, H)};
  for (std::size_t h = 0; h < H; ++h) {
    const Tensor<2> dout =  // [T, Dv]
        back_through_gate(kept, weights.gain, settings.eps, h, ConstMatrix(dheads).head(h, Dv),
                          Matrix(d.z).head(h, Dv), gradients.gain);
    back_through_tokens(qkv, kept.tokens[h], rule.backward(kept.tokens[h], dout), weights, settings,
                        h, d, gradients);
  }
  const Tensor<2> dprojected =  // [T, 2·G·D+H·Dv]
      short_convolution_backward(kept.projected, weights.conv, d.qkv, gradients.conv);
  return back_through_projections(x, dprojected, d, weights, gradients);
}
// [/layer]

}  // namespace t2t
