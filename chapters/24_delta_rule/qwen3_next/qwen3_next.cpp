#include "24_delta_rule/qwen3_next/qwen3_next.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <type_traits>

#include "01_embedding/embedding.hpp"
#include "02_normalization/rms_norm.hpp"
#include "24_delta_rule/qwen3_next/qwen3_next_weights.hpp"
#include "linalg.hpp"
#include "shapes.hpp"

namespace t2t {

bool Qwen3NextConfig::attends(std::size_t layer) const { return (layer + 1) % every == 0; }

void expect_qwen3_next_config(const Qwen3NextConfig& config) {
  expect_gated(config.attention);
  expect_delta_layer(config.delta);
  const std::size_t C = config.attention.C;
  expect(config.delta.C == C, "C of the delta layers", fmt::format("C = {}", C), config.delta.C);
  expect(config.delta.eps == config.attention.eps, "eps of the delta layers",
         fmt::format("eps = {}", config.attention.eps), config.delta.eps);
  for (const auto& [name, size] : {std::pair{"L, the blocks", config.L},
                                   {"V, the vocabulary", config.V},
                                   {"T_max, the longest sequence", config.T_max},
                                   {"every, the blocks to one that attends", config.every},
                                   {"E, the experts", config.E},
                                   {"F, the width of an expert", config.F},
                                   {"F_shared, the width of the shared network", config.F_shared}})
    expect(size >= 1, name, "at least 1", size);
  expect_router(config.router, config.E, 0);
  expect(config.theta > 0 && std::isfinite(config.theta), "theta", "a finite number above 0",
         config.theta);
}

static void expect_of_shape(const LatentTensorInfo& info, const Weight& w) {
  expect_shape(info.name, w, {info.rows, info.cols});
}
static void expect_of_shape(const LatentTensorInfo& info, const Tensor<1>& x) {
  expect_shape(info.name, x, {info.rows});
}

void expect_qwen3_next(const Qwen3Next& model) {
  const Qwen3NextConfig& config = model.config;
  expect_qwen3_next_config(config);
  expect(model.blocks.size() == config.L, "blocks", fmt::format("L = {}", config.L),
         model.blocks.size());
  const Tensor<2> no_tokens = empty(0, config.delta.C);
  for (std::size_t l = 0; l < config.L; ++l) {
    const Qwen3NextBlock& block = model.blocks[l];
    expect(block.experts.size() == config.E, fmt::format("experts of block {}", l),
           fmt::format("E = {}", config.E), block.experts.size());
    if (config.attends(l)) continue;
    try {
      expect_delta_call(no_tokens, block.delta, config.delta);
    } catch (const std::invalid_argument& error) {
      throw std::invalid_argument(fmt::format("block {}: {}", l, error.what()));
    }
  }
  for_each_qwen3_next_weight(model, [](const LatentTensorInfo& info, const auto& weight) {
    expect_of_shape(info, weight);
  });
}

Qwen3Next draw_qwen3_next(const Qwen3NextConfig& config, Random& random) {
  expect_qwen3_next_config(config);
  Qwen3Next model{};
  model.config = config;
  model.blocks.resize(config.L);
  for (std::size_t l = 0; l < config.L; ++l) {
    model.blocks[l].experts.resize(config.E);
    if (!config.attends(l)) model.blocks[l].delta = draw_delta_weights(config.delta, random);
  }
  for_each_qwen3_next_weight(model, [&](const LatentTensorInfo& info, auto& weight) {
    if constexpr (std::is_same_v<decltype(weight), Tensor<1>&>)
      weight = xt::ones<float>({info.rows});
    else
      weight = random.normal<2>({info.rows, info.cols}, 1 / std::sqrt(float(info.cols)));
  });
  return model;
}

std::size_t parameter_count(const Qwen3Next& model) {
  std::size_t count = 0;
  for_each_qwen3_next_weight(
      model, [&](const LatentTensorInfo&, const auto& weight) { count += weight.size(); });
  for (const Qwen3NextBlock& block : model.blocks) {
    const DeltaLayerWeights& w = block.delta;
    for (const Tensor<2>* x : {&w.w_qkv, &w.conv, &w.w_beta, &w.w_gate, &w.w_z, &w.w_o})
      count += x->size();
    for (const Tensor<1>* x : {&w.a, &w.b, &w.gain}) count += x->size();
  }
  return count;
}

// [bytes]
std::size_t qwen3_next_state_bytes(const Qwen3NextConfig& config) {
  return delta_state_bytes(config.L - config.attention_layers(), config.delta, sizeof(float));
}
std::size_t qwen3_next_cache_bytes(const Qwen3NextConfig& config, std::size_t S,
                                   std::size_t number_bytes) {
  return kv_cache_bytes(config.attention_layers(), config.attention.G, S, config.attention.D,
                        number_bytes);
}
// [/bytes]

/// The chunk, once all that a state is made of has been checked.
static std::size_t checked_chunk(const Qwen3NextConfig& config, std::size_t S, std::size_t chunk) {
  expect_qwen3_next_config(config);
  expect(S >= 1 && S <= config.T_max, "S, the positions of the state",
         fmt::format("1 to T_max = {}", config.T_max), S);
  expect(chunk >= 1, "chunk", "at least 1", chunk);
  return chunk;
}

Qwen3NextState::Qwen3NextState(const Qwen3NextConfig& config, std::size_t S, std::size_t chunk)
    : chunk(checked_chunk(config, S, chunk)),
      attention(chunk, S, config.attention.H, config.attention.D),
      experts(chunk, config.attention.C, std::max(config.F, config.F_shared), config.E,
              config.router.k, Activation::swiglu) {
  for (std::size_t l = 0; l < config.L; ++l) {
    const bool attends = config.attends(l);
    states.push_back(attends ? DeltaLayerState{} : empty_delta_state(config.delta));
    caches.push_back(attends ? make_kv_cache(config.attention.G, S, config.attention.D)
                             : KvCache{});
  }
  rope = rope_table(S, rope_frequencies(config.attention.R, config.theta));
}

std::size_t Qwen3NextState::bytes() const {
  std::size_t elements = 0;
  for (const DeltaLayerState& state : states) elements += state.memory.size() + state.kept.size();
  for (const KvCache& cache : caches) elements += cache.keys.size() + cache.values.size();
  return elements * sizeof(float);
}

// [block]
/// The last norm's output for one chunk of tokens.
static Tensor<2> run_rows(std::span<const int> ids, const Qwen3Next& model, Qwen3NextState& state) {
  const Qwen3NextConfig& config = model.config;
  const std::size_t T = ids.size(), C = config.attention.C;
  const float eps = config.attention.eps;
  Tensor<2> x = empty(T, C), y = empty(T, C);  // [T, C]
  for (std::size_t t = 0; t < T; ++t) model.embedding.row(std::size_t(ids[t]), row(x, t));
  for (std::size_t l = 0; l < config.L; ++l) {
    const Qwen3NextBlock& block = model.blocks[l];
    const Tensor<2> h = rms_norm(x, block.mixer_gain, eps);
    if (config.attends(l))
      x += gated_attention_step(h, block.attention, config.attention, state.rope, state.caches[l],
                                state.attention);
    else
      x += delta_layer(h, block.delta, config.delta, state.states[l]);
    const Mixture mixture = {.router = block.router,
                             .experts = block.experts,
                             .activation = Activation::swiglu,
                             .settings = config.router,
                             .shared = {.weights = &block.shared, .gate = &block.shared_gate}};
    experts_rows(rms_norm(x, block.network_gain, eps), mixture, state.experts, y);
    x += y;
  }
  return rms_norm(x, model.final_gain, eps);
}
// [/block]

Tensor<2> qwen3_next_stream(std::span<const int> ids, const Qwen3Next& model,
                            Qwen3NextState& state) {
  const std::size_t T = ids.size(), S = state.rope.cos.shape(0), C = model.config.attention.C;
  expect(T >= 1, "T, the new tokens", "at least 1", T);
  expect_ids(ids, model.config.V);
  if (T > S || state.length > S - T)
    throw std::invalid_argument(
        fmt::format("state: wanted room for {} more tokens, got {} of {} positions filled", T,
                    state.length, S));
  Tensor<2> stream = empty(T, C);  // [T, C]
  for (std::size_t t = 0; t < T; t += state.chunk) {
    const std::size_t count = std::min(state.chunk, T - t);
    const Tensor<2> rows = run_rows(ids.subspan(t, count), model, state);
    std::ranges::copy(rows, row(stream, t).data());
    state.length += count;
  }
  return stream;
}

Tensor<2> qwen3_next_logits(std::span<const int> ids, const Qwen3Next& model,
                            Qwen3NextState& state) {
  return matmul_bt(qwen3_next_stream(ids, model, state), model.output());
}

}  // namespace t2t
