#include "24_delta_rule/layer/delta_layer.hpp"

#include <algorithm>
#include <cmath>

#include "02_normalization/rms_norm.hpp"
#include "06_gqa/grouped_query_attention.hpp"
#include "24_delta_rule/chunks/delta_chunks.hpp"
#include "24_delta_rule/layer/short_convolution.hpp"
#include "linalg.hpp"
#include "shapes.hpp"

namespace t2t {

void expect_delta_layer(const DeltaLayerSettings& settings) {
  const auto& [C, H, D, Dv, W, chunk, G, eps] = settings;
  expect(C >= 1, "C, the width of the layer", "at least 1", C);
  expect(H >= 1, "H, the heads", "at least 1", H);
  expect(D >= 1, "D, the width of keys", "at least 1", D);
  expect(Dv >= 1, "Dv, the width of values", "at least 1", Dv);
  expect(W >= 1, "W, the tokens of a convolution", "at least 1", W);
  expect(chunk >= 1, "chunk, the tokens of a chunk", "at least 1", chunk);
  expect_groups(H, settings.key_heads());
  expect(eps > 0 && std::isfinite(eps), "eps", "a finite number above 0", eps);
}

DeltaLayerWeights draw_delta_weights(const DeltaLayerSettings& settings, Random& random) {
  expect_delta_layer(settings);
  const auto& [C, H, D, Dv, W, chunk, G, eps] = settings;
  const auto draw = [&](std::size_t out, std::size_t in) {
    return random.normal<2>({out, in}, 1 / std::sqrt(float(in)));
  };
  DeltaLayerWeights weights;
  weights.w_qkv = draw(settings.channels(), C);
  weights.conv = draw(settings.channels(), W);
  weights.w_beta = draw(H, C);
  weights.w_gate = draw(H, C);
  weights.a = random.uniform<1>({H}, -4, 0);  // decays from slow to fast
  weights.b = random.uniform<1>({H}, -1, 1);
  weights.w_z = draw(H * Dv, C);
  weights.gain = xt::ones<float>({Dv});
  weights.w_o = draw(C, H * Dv);
  return weights;
}

DeltaLayerState empty_delta_state(const DeltaLayerSettings& settings) {
  expect_delta_layer(settings);
  return {xt::zeros<float>({settings.H, settings.D, settings.Dv}),
          xt::zeros<float>({settings.W - 1, settings.channels()})};
}

std::size_t delta_state_bytes(std::size_t L, const DeltaLayerSettings& settings,
                              std::size_t number_bytes) {
  return L * number_bytes *
         (settings.H * settings.D * settings.Dv + (settings.W - 1) * settings.channels());
}

static float sigmoid(float x) { return 1 / (1 + std::exp(-x)); }
/// ln(1 + e^x), without overflow.
static float softplus(float x) { return std::max(x, 0.0f) + std::log1p(std::exp(-std::abs(x))); }

void expect_delta_call(const Tensor<2>& x, const DeltaLayerWeights& weights,
                       const DeltaLayerSettings& settings) {
  expect_delta_layer(settings);
  const auto& [C, H, D, Dv, W, chunk, G, eps] = settings;
  expect_shape("x", x, {x.shape(0), C});
  expect_shape("w_qkv", weights.w_qkv, {settings.channels(), C});
  expect_shape("conv", weights.conv, {settings.channels(), W});
  expect_shape("w_beta", weights.w_beta, {H, C});
  expect_shape("w_gate", weights.w_gate, {H, C});
  expect_shape("a", weights.a, {H});
  expect_shape("b", weights.b, {H});
  expect_shape("w_z", weights.w_z, {H * Dv, C});
  expect_shape("gain", weights.gain, {Dv});
  expect_shape("w_o", weights.w_o, {C, H * Dv});
}

// [layer]
DeltaTokens delta_tokens(const Tensor<2>& x, const Tensor<2>& qkv, const DeltaLayerWeights& weights,
                         const DeltaLayerSettings& settings, std::size_t h) {
  expect_delta_call(x, weights, settings);
  const std::size_t T = x.shape(0), H = settings.H, D = settings.D, Dv = settings.Dv;
  expect_shape("qkv", qkv, {T, settings.channels()});
  expect(h < H, "h, a head", "below H", h);
  const std::size_t G = settings.key_heads(), group = group_of(h, H, G);
  const ConstMatrix all = qkv;
  DeltaTokens tokens{unit_rows(all.head(group, D)) / std::sqrt(float(D)),
                     unit_rows(all.cols_from((G + group) * D, D)),
                     copy_of(all.cols_from(2 * G * D + h * Dv, Dv)), empty(T), empty(T)};
  Tensor<2> beta = empty(T, 1), gate = empty(T, 1);
  matmul_bt(x, ConstMatrix(weights.w_beta).rows_from(h, 1), beta);
  matmul_bt(x, ConstMatrix(weights.w_gate).rows_from(h, 1), gate);
  for (std::size_t t = 0; t < T; ++t) {
    tokens.beta(t) = sigmoid(beta(t, 0));
    tokens.g(t) = -std::exp(weights.a(h)) * softplus(gate(t, 0) + weights.b(h));
  }
  return tokens;
}

Tensor<2> delta_layer(const Tensor<2>& x, const DeltaLayerWeights& weights,
                      const DeltaLayerSettings& settings, DeltaLayerState& state) {
  expect_delta_call(x, weights, settings);
  const std::size_t T = x.shape(0), H = settings.H, D = settings.D, Dv = settings.Dv;
  expect_shape("memory", state.memory, {H, D, Dv});
  const Tensor<2> qkv = short_convolution(matmul_bt(x, weights.w_qkv), weights.conv, state.kept);
  const Tensor<2> z = matmul_bt(x, weights.w_z);  // [T, H·Dv]
  Tensor<2> heads = empty(T, H * Dv);             // [T, H·Dv]
  for (std::size_t h = 0; h < H; ++h) {
    const DeltaTokens tokens = delta_tokens(x, qkv, weights, settings, h);
    Tensor<2> memory = xt::view(state.memory, h);  // [D, Dv]
    const Tensor<2> o =                            // [T, Dv]
        T == 1 ? delta_recurrence(tokens, StateRule::correct, memory)
               : delta_chunks(tokens, StateRule::correct, settings.chunk, memory);
    xt::view(state.memory, h) = memory;
    const Tensor<2> gate = copy_of(ConstMatrix(z).head(h, Dv));  // [T, Dv]
    xt::view(heads, xt::all(), xt::range(h * Dv, h * Dv + Dv)) =
        rms_norm(o, weights.gain, settings.eps) * gate / (1 + xt::exp(-gate));
  }
  return matmul_bt(heads, weights.w_o);  // [T, C]
}
// [/layer]

}  // namespace t2t
