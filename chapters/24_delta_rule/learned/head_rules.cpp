#include "24_delta_rule/learned/head_rules.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "04_causal_attention/fast/score_rule.hpp"
#include "13_training/attention/attention_backward.hpp"
#include "24_delta_rule/backward/chunks_backward.hpp"
#include "24_delta_rule/chunks/delta_chunks.hpp"
#include "shapes.hpp"

namespace t2t {

static HeadRule attention_head(const DeltaLayerSettings& settings, std::size_t window) {
  const ScoreRule rule(Mask::sliding(window), 16 * std::sqrt(float(settings.D)));
  return {[rule](const DeltaTokens& x) { return attention(x.q, x.k, x.v, rule); },
          [rule](const DeltaTokens& x, const Tensor<2>& dout) -> DeltaTokens {
            const AttentionGradients d = attention_backward(x.q, x.k, x.v, 1, 1, rule, dout);
            return {d.q, d.k, d.v, xt::zeros_like(x.g), xt::zeros_like(x.beta)};
          }};
}

static DeltaTokens without_decay(const DeltaTokens& x) {
  DeltaTokens tokens = x;
  tokens.g.fill(0);
  return tokens;
}

static HeadRule linear_head(const DeltaLayerSettings& settings) {
  const Tensor<2> none = xt::zeros<float>({settings.D, settings.Dv});  // [D, Dv]
  const std::size_t chunk = settings.chunk;
  return {[none, chunk](const DeltaTokens& x) {
            Tensor<2> state = none;
            return delta_chunks(without_decay(x), StateRule::add, chunk, state);
          },
          [none, chunk](const DeltaTokens& x, const Tensor<2>& dout) {
            // The layer's own g is not read, and has no gradient.
            return without_decay(
                delta_chunks_backward(without_decay(x), StateRule::add, chunk, none, dout, none)
                    .tokens);
          }};
}

HeadRule head_rule(Mixer mixer, const DeltaLayerSettings& settings) {
  expect_delta_layer(settings);
  expect(settings.D == settings.Dv, "Dv, the width of values", "D = " + std::to_string(settings.D),
         settings.Dv);
  switch (mixer) {
    case Mixer::attention:
      return attention_head(settings, 0);
    case Mixer::window:
      return attention_head(settings, recall_window);
    case Mixer::linear:
      return linear_head(settings);
    case Mixer::delta:
      break;
  }
  return delta_head(settings);
}

std::size_t kept_elements(Mixer mixer, const DeltaLayerSettings& settings, std::size_t S) {
  const std::size_t of_token = settings.H * (settings.D + settings.Dv);
  if (mixer == Mixer::attention) return S * of_token;
  if (mixer == Mixer::window) return std::min(S, recall_window) * of_token;
  return settings.H * settings.D * settings.Dv;
}

std::vector<Mixer> mixers_of(const std::string& kind) {
  if (kind == "attention") return {Mixer::attention, Mixer::attention};
  if (kind == "window") return {Mixer::window, Mixer::window};
  if (kind == "linear") return {Mixer::linear, Mixer::linear};
  if (kind == "delta") return {Mixer::delta, Mixer::delta};
  if (kind == "hybrid") return {Mixer::delta, Mixer::attention};
  throw std::invalid_argument(
      "kind of model: wanted attention, window, linear, delta or hybrid, "
      "got " +
      kind);
}

}  // namespace t2t
