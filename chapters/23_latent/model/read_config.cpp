#include "23_latent/model/read_config.hpp"

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <utility>

#include "03_rope/scaling/rope_scaling.hpp"
#include "10_pretrained/file/file_values.hpp"

namespace t2t {

/// The width of a head under the newer key or, in an older file, under the older one.
static std::size_t head_width(const FileValues& values, const std::string& name) {
  return values.size(values.has(name + "_mla") ? name + "_mla" : name);
}

static LatentSettings read_attention(const FileValues& values) {
  LatentSettings s{};
  s.C = values.size("embedding_length");
  s.H = values.size("attention.head_count");
  s.K = values.size("attention.kv_lora_rank");
  s.Q = values.size("attention.q_lora_rank", 0, 0);
  s.R = values.size("rope.dimension_count");
  s.Dv = head_width(values, "attention.value_length");
  const std::size_t query_width = head_width(values, "attention.key_length");
  if (query_width <= s.R)
    values.fail("rope.dimension_count",
                fmt::format("wanted less than {}, a head's width, got {}", query_width, s.R));
  s.N = query_width - s.R;
  s.pairing = Pairing::neighbours;
  s.eps = float(values.number("attention.layer_norm_rms_epsilon"));
  return s;
}

// [yarn]
/// RoPE's frequencies, and with YaRN the factor m of the scores.
static Frequencies read_rope(const FileValues& values, LatentSettings& s) {
  const double theta = values.number("rope.freq_base", 10000);
  const std::string scaling = values.text("rope.scaling.type", "none");
  if (scaling == "none") return rope_frequencies(s.R, theta);
  if (scaling != "yarn") values.fail("rope.scaling.type", "wanted none or yarn, got " + scaling);
  YarnScaling yarn;
  yarn.factor = values.number("rope.scaling.factor");
  yarn.trained = values.size("rope.scaling.original_context_length");
  yarn.fast = values.number("rope.scaling.yarn_beta_fast", 32);
  yarn.slow = values.number("rope.scaling.yarn_beta_slow", 1);
  // cos and sin would be multiplied by a ratio of two such factors, which is 1 in these models.
  const double tenth = values.number("rope.scaling.yarn_log_multiplier");
  s.m = yarn_m(yarn.factor, 10 * tenth);
  return yarn_scaling(s.R, theta, yarn);
}
// [/yarn]

static void read_experts(const GgufFile& file, const FileValues& values, LatentConfig& config) {
  config.E = values.size("expert_count");
  config.F_expert = values.size("expert_feed_forward_length");
  config.F_shared = config.F_expert * values.size("expert_shared_count", 0, 0);
  GroupedRouting& routing = config.routing;
  routing.router.k = values.size("expert_used_count");
  routing.router.normalized = file.metadata().truth(values.full("expert_weights_norm"), false);
  const std::size_t gating = values.size("expert_gating_func", 1, 0);
  if (gating != 1 && gating != 2)
    values.fail("expert_gating_func",
                fmt::format("wanted 1 (softmax) or 2 (sigmoid), got {}", gating));
  routing.router.scoring = gating == 2 ? Scoring::sigmoid : Scoring::softmax;
  routing.scale = float(values.number("expert_weights_scale", 1));
  routing.groups = values.size("expert_group_count", 1);
  routing.open = values.size("expert_group_used_count", routing.groups);
}

/// Keys that would change the computation, with the value that changes nothing.
static void refuse_what_is_not_built(const GgufFile& file, const FileValues& values) {
  for (const auto& [name, neutral] :
       {std::pair{"rope.scaling.yarn_attn_factor", 1.0}, {"attention.temperature_scale", 0.0}}) {
    const double value = file.metadata().real(values.full(name), neutral);
    if (value != neutral) values.fail(name, fmt::format("wanted {}, got {}", neutral, value));
  }
}

LatentConfig read_latent_config(const GgufFile& file) {
  const FileValues values(file, "deepseek2");
  refuse_what_is_not_built(file, values);
  LatentConfig config{};
  config.attention = read_attention(values);
  config.L = values.size("block_count");
  config.T_max = values.size("context_length");
  config.F = values.size("feed_forward_length");
  config.V = values.vocabulary();
  config.tied = !file.has_tensor("output.weight");
  config.dense = values.size("leading_dense_block_count", 0, 0);
  if (config.dense < config.L) read_experts(file, values, config);
  // Each block has more tensors than one. A larger count is wrong, and lists would be long.
  if (config.L > file.tensors().size())
    values.fail("block_count", fmt::format("wanted at most the {} tensors, got {}",
                                           file.tensors().size(), config.L));
  try {
    expect_latent(config.attention);
    config.frequencies = read_rope(values, config.attention);
    expect_latent_config(config);
  } catch (const std::invalid_argument& error) {
    throw std::runtime_error(fmt::format("{}: {}", file.name(), error.what()));
  }
  return config;
}

}  // namespace t2t
