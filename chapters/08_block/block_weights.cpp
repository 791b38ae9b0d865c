#include "08_block/block_weights.hpp"

#include <cmath>
#include <stdexcept>
#include <string_view>

#include "04_causal_attention/attention.hpp"
#include "shapes.hpp"

namespace t2t {

/// Throws unless part divides whole. (The message is only made when it is needed: decoding runs
/// these checks at every step and allocates nothing.)
static void expect_divides(std::string_view name, std::size_t whole, const char* part_name,
                           std::size_t part) {
  if (part < 1 || whole % part != 0)
    expect(false, name, "a multiple of " + std::string(part_name) + " = " + std::to_string(part),
           double(whole));
}

BlockSettings llama_style(std::size_t C, std::size_t H, std::size_t G, std::size_t F) {
  expect_divides("C", C, "H", H);
  return {.C = C, .H = H, .G = G, .D = C / H, .F = F};
}

BlockSettings gpt2_style(std::size_t C, std::size_t H) {
  BlockSettings settings = llama_style(C, H, H, 4 * C);
  settings.norm = Norm::layer;
  settings.activation = Activation::gelu_tanh;
  settings.biases = true;
  settings.turned = false;
  return settings;
}

void expect_settings(const BlockSettings& settings) {
  const auto& [C, H, G, D, F, norm, place, activation, biases, turned, pairing, theta, eps] =
      settings;
  expect(C >= 1, "C, the width", "at least 1", double(C));
  expect(H >= 1, "H, the query heads", "at least 1", double(H));
  expect(G >= 1, "G, the key and value heads", "at least 1", double(G));
  expect_divides("H, the query heads", H, "G", G);
  expect(D >= 1, "D, the width of a head", "at least 1", double(D));
  expect(!turned || D % 2 == 0, "D, the width of a head", "an even number for RoPE", double(D));
  expect(F >= 1, "F, the feed-forward width", "at least 1", double(F));
  expect(std::isfinite(eps) && eps > 0, "eps", "a number above 0", eps);
  if (biases && is_gated(activation))
    throw std::invalid_argument("biases: wanted none with a gated activation, got " +
                                std::string(activation_name(activation)));
}

RopeTable block_rope_table(const BlockSettings& settings, std::size_t S) {
  expect_settings(settings);
  if (!settings.turned) return {};
  return rope_table(S, rope_frequencies(settings.D, settings.theta));
}

static void expect_norm(std::string_view gain, std::string_view bias, const NormWeights& weights,
                        const BlockSettings& settings) {
  expect_shape(gain, weights.gain, {settings.C});
  expect_shape(bias, weights.bias, {settings.norm == Norm::layer ? settings.C : 0});
}

void expect_weights(const BlockWeights& weights, const BlockSettings& settings) {
  const std::size_t C = settings.C, F = settings.F;
  const std::size_t HD = settings.H * settings.D, GD = settings.G * settings.D;
  expect_norm("attention_norm.gain", "attention_norm.bias", weights.attention_norm, settings);
  expect_shape("w_q", weights.w_q, {HD, C});
  expect_shape("w_k", weights.w_k, {GD, C});
  expect_shape("w_v", weights.w_v, {GD, C});
  expect_shape("w_o", weights.w_o, {C, HD});

  // A bias that would be ignored is a mistake as much as a missing one.
  const bool biases = settings.biases;
  expect_shape("b_q", weights.b_q, {biases ? HD : 0});
  expect_shape("b_k", weights.b_k, {biases ? GD : 0});
  expect_shape("b_v", weights.b_v, {biases ? GD : 0});
  expect_shape("b_o", weights.b_o, {biases ? C : 0});

  const FeedForwardWeights& network = weights.feed_forward;
  const bool gated = is_gated(settings.activation);
  expect_norm("feed_forward_norm.gain", "feed_forward_norm.bias", weights.feed_forward_norm,
              settings);
  expect_shape("w_gate", network.w_gate, {gated ? F : 0, gated ? C : 0});
  expect_shape("w_up", network.w_up, {F, C});
  expect_shape("w_down", network.w_down, {C, F});
  expect_shape("b_up", network.b_up, {biases ? F : 0});
  expect_shape("b_down", network.b_down, {biases ? C : 0});
}

static NormWeights norm_weights(const BlockSettings& settings) {
  return {xt::ones<float>({settings.C}),
          xt::zeros<float>({settings.norm == Norm::layer ? settings.C : 0})};
}

BlockWeights block_weights(const BlockSettings& settings, Random& random, float residual_scale) {
  expect_settings(settings);
  const std::size_t C = settings.C, F = settings.F;
  const std::size_t HD = settings.H * settings.D, GD = settings.G * settings.D;
  const auto draw = [&](std::size_t out, std::size_t in, float scale) {
    return random.normal<2>({out, in}, scale / std::sqrt(float(in)));
  };

  BlockWeights weights;
  weights.attention_norm = weights.feed_forward_norm = norm_weights(settings);
  weights.w_q = draw(HD, C, 1);
  weights.w_k = draw(GD, C, 1);
  weights.w_v = draw(GD, C, 1);
  weights.w_o = draw(C, HD, residual_scale);
  weights.feed_forward = feed_forward_weights(C, F, settings.activation, random);
  weights.feed_forward.w_down *= residual_scale;
  if (!settings.biases) return weights;

  weights.b_q = xt::zeros<float>({HD});
  weights.b_k = weights.b_v = xt::zeros<float>({GD});
  weights.b_o = weights.feed_forward.b_down = xt::zeros<float>({C});
  weights.feed_forward.b_up = xt::zeros<float>({F});
  return weights;
}

static std::size_t parameter_count(const NormWeights& norm) {
  return norm.gain.size() + norm.bias.size();
}

std::size_t parameter_count(const BlockWeights& weights) {
  return parameter_count(weights.attention_norm) + weights.w_q.size() + weights.w_k.size() +
         weights.w_v.size() + weights.b_q.size() + weights.b_k.size() + weights.b_v.size() +
         weights.w_o.size() + weights.b_o.size() + parameter_count(weights.feed_forward_norm) +
         parameter_count(weights.feed_forward);
}

std::vector<PartCost> block_costs(const BlockSettings& settings, std::size_t T, std::size_t S) {
  expect_settings(settings);
  expect_mask(T, S, Mask::causal);
  const std::size_t C = settings.C, F = settings.F;
  const std::size_t HD = settings.H * settings.D, GD = settings.G * settings.D;
  const std::size_t bias = settings.biases ? 1 : 0, up_matrices = is_gated(settings.activation) + 1;
  const std::size_t norm = settings.norm == Norm::layer ? 2 * C : C;

  // A number of a matrix is multiplied and added once for each token. The last of T queries sees S
  // keys, the first S − T + 1; each costs D products with the key and D with the value, a head.
  const auto product = [&](std::size_t out, std::size_t in) { return 2.0 * double(T * out * in); };
  const double seen = double(T) * (double(S) - (double(T) - 1) / 2);
  return {{"norm", norm, 0},
          {"q, k, v", (HD + 2 * GD) * (C + bias), product(HD + 2 * GD, C)},
          {"attention", 0, 4 * seen * double(HD)},
          {"o", C * (HD + bias), product(C, HD)},
          {"norm", norm, 0},
          {"feed-forward", up_matrices * F * C + C * F + bias * (F + C),
           product(up_matrices * F, C) + product(C, F)}};
}

}  // namespace t2t
