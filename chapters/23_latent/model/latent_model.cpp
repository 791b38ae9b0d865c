#include "23_latent/model/latent_model.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <type_traits>

#include "01_embedding/embedding.hpp"
#include "02_normalization/rms_norm.hpp"
#include "23_latent/model/weight_list.hpp"
#include "linalg.hpp"
#include "shapes.hpp"

namespace t2t {

static void expect_weight(const LatentTensorInfo& info, const Weight& w) {
  expect_shape(info.name, w, {info.rows, info.cols});
}
static void expect_weight(const LatentTensorInfo& info, const Tensor<2>& w) {
  expect_shape(info.name, w, {info.rows, info.cols});
}
static void expect_weight(const LatentTensorInfo& info, const Tensor<1>& x) {
  const bool may_lack = info.role == Role::bias && x.size() == 0;
  if (!may_lack) expect_shape(info.name, x, {info.rows});
}

void expect_latent_model(const LatentModel& model) {
  const LatentConfig& config = model.config;
  expect_latent_config(config);
  expect(model.blocks.size() == config.L, "blocks", fmt::format("L = {}", config.L),
         model.blocks.size());
  for (std::size_t l = 0; l < config.L; ++l) {
    const std::size_t experts = config.has_experts(l) ? config.E : 0;
    expect(model.blocks[l].experts.size() == experts, fmt::format("experts of block {}", l),
           fmt::format("{}", experts), model.blocks[l].experts.size());
  }
  for_each_latent_weight(
      model, [](const LatentTensorInfo& info, const auto& weight) { expect_weight(info, weight); });
}

LatentModel draw_latent_model(const LatentConfig& config, Random& random) {
  expect_latent_config(config);
  LatentModel model{};
  model.config = config;
  model.blocks.resize(config.L);
  for (std::size_t l = config.dense; l < config.L; ++l) model.blocks[l].experts.resize(config.E);
  const auto matrix = [&](const LatentTensorInfo& info) {
    return random.normal<2>({info.rows, info.cols}, 1 / std::sqrt(float(info.cols)));
  };
  for_each_latent_weight(model, [&](const LatentTensorInfo& info, auto& weight) {
    if constexpr (!std::is_same_v<decltype(weight), Tensor<1>&>)
      weight = matrix(info);
    else if (info.role == Role::gain)
      weight = xt::ones<float>({info.rows});
    else if (config.routing.router.scoring == Scoring::sigmoid)
      weight = random.normal<1>({info.rows}, 0.1f);
  });
  return model;
}

std::size_t parameter_count(const LatentModel& model) {
  std::size_t count = 0;
  for_each_latent_weight(
      model, [&](const LatentTensorInfo&, const auto& weight) { count += weight.size(); });
  return count;
}

LatentState::LatentState(const LatentConfig& config, std::size_t S, std::size_t chunk)
    : chunk(chunk),
      attention(config.attention, S),
      network(chunk, config.dense > 0 ? config.F : 0, Activation::swiglu) {
  expect_latent_config(config);
  expect(S >= 1 && S <= config.T_max, "S, the positions of the state",
         fmt::format("1 to T_max = {}", config.T_max), S);
  expect(chunk >= 1, "chunk", "at least 1", chunk);
  for (std::size_t l = 0; l < config.L; ++l)
    caches.push_back(make_latent_cache(config.attention, S));
  rope = rope_table(S, config.frequencies);
  if (config.dense < config.L)
    experts.emplace(chunk, config.attention.C, std::max(config.F_expert, config.F_shared), config.E,
                    config.routing.router.k, Activation::swiglu);
}

// [block]
/// The second half of a block: one network, or what the router chooses beside the shared network.
static void run_network(const LatentModel& model, std::size_t l, const Tensor<2>& x,
                        LatentState& state, Matrix y) {
  const LatentBlock& block = model.blocks[l];
  const LatentConfig& config = model.config;
  if (!config.has_experts(l))
    return feed_forward_rows(x, block.network, Activation::swiglu, state.network, y);
  const Routed routed = route_in_groups(x, block.router.floats(), config.routing, row(block.bias));
  const Mixture mixture = {.router = block.router,
                           .experts = block.experts,
                           .activation = Activation::swiglu,
                           .settings = config.routing.router,
                           .shared = {.weights = config.F_shared > 0 ? &block.shared : nullptr}};
  run_choices(x, mixture, routed.experts, routed.weights, *state.experts, y);
}

/// The last norm's output for one chunk of tokens.
static Tensor<2> run_chunk(std::span<const int> ids, const LatentModel& model, LatentState& state) {
  const LatentSettings& settings = model.config.attention;
  const std::size_t T = ids.size();
  Tensor<2> x = empty(T, settings.C), y = empty(T, settings.C);  // [T, C]
  for (std::size_t t = 0; t < T; ++t) model.embedding.row(std::size_t(ids[t]), row(x, t));
  for (std::size_t l = 0; l < model.config.L; ++l) {
    const LatentBlock& block = model.blocks[l];
    x += latent_step(rms_norm(x, block.attention_gain, settings.eps), block.attention, settings,
                     state.rope, state.caches[l], state.attention);
    run_network(model, l, rms_norm(x, block.network_gain, settings.eps), state, y);
    x += y;
  }
  return rms_norm(x, model.final_gain, settings.eps);
}
// [/block]

Tensor<2> latent_stream(std::span<const int> ids, const LatentModel& model, LatentState& state) {
  const std::size_t T = ids.size(), S = state.rope.cos.shape(0), length = state.length();
  expect(T >= 1, "T, the new tokens", "at least 1", T);
  expect_ids(ids, model.config.V);
  if (T > S || length > S - T)
    throw std::invalid_argument(fmt::format(
        "state: wanted room for {} more tokens, got {} of {} positions filled", T, length, S));
  Tensor<2> stream = empty(T, model.config.attention.C);  // [T, C]
  for (std::size_t t = 0; t < T; t += state.chunk) {
    const Tensor<2> of_chunk =
        run_chunk(ids.subspan(t, std::min(state.chunk, T - t)), model, state);
    std::ranges::copy(of_chunk, row(stream, t).data());
  }
  return stream;
}

Tensor<2> latent_logits(std::span<const int> ids, const LatentModel& model, LatentState& state) {
  return matmul_bt(latent_stream(ids, model, state), model.output());
}

}  // namespace t2t
