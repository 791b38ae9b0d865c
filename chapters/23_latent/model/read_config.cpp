#include "23_latent/model/read_config.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "03_rope/scaling/rope_scaling.hpp"
#include "10_pretrained/tokenizer/utf8.hpp"

namespace t2t {

static constexpr std::string_view architecture = "deepseek2";

/// The metadata under keys that begin with the architecture's name.
struct DeepSeekKeys {
  const GgufFile& file;

  std::string key(std::string_view name) const { return fmt::format("{}.{}", architecture, name); }
  bool has(std::string_view name) const { return file.metadata().has(key(name)); }
  [[noreturn]] void fail(std::string_view name, std::string_view wanted, double got) const {
    throw std::runtime_error(
        fmt::format("{}: {}: wanted {}, got {}", file.name(), key(name), wanted, got));
  }

  std::size_t size(std::string_view name, std::int64_t least = 1) const {
    const std::int64_t value = file.metadata().integer(key(name)),
                       most = std::numeric_limits<int>::max();
    if (value < least || value > most)
      fail(name, fmt::format("{} to {}", least, most), double(value));
    return std::size_t(value);
  }
  std::size_t size_or(std::string_view name, std::size_t fallback) const {
    return has(name) ? size(name, 0) : fallback;
  }
  /// A finite number above 0.
  double positive(std::string_view name) const {
    const double value = file.metadata().real(key(name));
    if (!(value > 0) || !std::isfinite(value)) fail(name, "a number above 0", value);
    return value;
  }
  double positive_or(std::string_view name, double fallback) const {
    return has(name) ? positive(name) : fallback;
  }
};

/// The width of a head under the newer key or, in an older file, under the older one.
static std::size_t head_width(const DeepSeekKeys& keys, const std::string& name) {
  return keys.size(keys.has(name + "_mla") ? name + "_mla" : name);
}

static LatentSettings read_attention(const DeepSeekKeys& keys) {
  LatentSettings s{};
  s.C = keys.size("embedding_length");
  s.H = keys.size("attention.head_count");
  s.K = keys.size("attention.kv_lora_rank");
  s.Q = keys.size_or("attention.q_lora_rank", 0);
  s.R = keys.size("rope.dimension_count");
  s.Dv = head_width(keys, "attention.value_length");
  const std::size_t query_width = head_width(keys, "attention.key_length");
  if (query_width <= s.R)
    keys.fail("rope.dimension_count", fmt::format("less than {}, a head's width", query_width),
              double(s.R));
  s.N = query_width - s.R;
  s.pairing = Pairing::neighbours;
  s.eps = float(keys.positive("attention.layer_norm_rms_epsilon"));
  return s;
}

// [yarn]
/// RoPE's frequencies, and with YaRN the factor m of the scores.
static Frequencies read_rope(const DeepSeekKeys& keys, LatentSettings& s) {
  const double theta = keys.positive_or("rope.freq_base", 10000);
  const std::string type = keys.key("rope.scaling.type");
  const std::string_view scaling =
      keys.has("rope.scaling.type") ? keys.file.metadata().text(type) : "none";
  if (scaling == "none") return rope_frequencies(s.R, theta);
  if (scaling != "yarn")
    throw std::runtime_error(fmt::format("{}: {}: wanted none or yarn, got {}", keys.file.name(),
                                         type, printable(scaling)));
  YarnScaling yarn;
  yarn.factor = keys.positive("rope.scaling.factor");
  yarn.trained = keys.size("rope.scaling.original_context_length");
  yarn.fast = keys.positive_or("rope.scaling.yarn_beta_fast", 32);
  yarn.slow = keys.positive_or("rope.scaling.yarn_beta_slow", 1);
  // cos and sin would be multiplied by a ratio of two such factors, which is 1 in these models.
  const double tenth = keys.positive("rope.scaling.yarn_log_multiplier");
  s.m = yarn_m(yarn.factor, 10 * tenth);
  return yarn_scaling(s.R, theta, yarn);
}
// [/yarn]

static void read_experts(const DeepSeekKeys& keys, LatentConfig& config) {
  config.E = keys.size("expert_count");
  config.F_expert = keys.size("expert_feed_forward_length");
  config.F_shared = config.F_expert * keys.size_or("expert_shared_count", 0);
  GroupedRouting& routing = config.routing;
  routing.router.k = keys.size("expert_used_count");
  routing.router.normalized = keys.file.metadata().truth(keys.key("expert_weights_norm"), false);
  const std::size_t gating = keys.size_or("expert_gating_func", 1);
  if (gating != 1 && gating != 2)
    keys.fail("expert_gating_func", "1 (softmax) or 2 (sigmoid)", double(gating));
  routing.router.scoring = gating == 2 ? Scoring::sigmoid : Scoring::softmax;
  routing.scale = float(keys.positive_or("expert_weights_scale", 1));
  routing.groups = keys.has("expert_group_count") ? keys.size("expert_group_count") : 1;
  routing.open =
      keys.has("expert_group_used_count") ? keys.size("expert_group_used_count") : routing.groups;
}

/// Keys that would change the computation, with the value that changes nothing.
static void refuse_what_is_not_built(const DeepSeekKeys& keys) {
  for (const auto& [name, neutral] :
       {std::pair{"rope.scaling.yarn_attn_factor", 1.0}, {"attention.temperature_scale", 0.0}}) {
    const double value = keys.file.metadata().real(keys.key(name), neutral);
    if (value != neutral) keys.fail(name, fmt::format("{}", neutral), value);
  }
}

LatentConfig read_latent_config(const GgufFile& file) {
  const std::string_view name = file.metadata().text("general.architecture");
  if (name != architecture)
    throw std::runtime_error(fmt::format("{}: general.architecture: wanted {}, got {}", file.name(),
                                         architecture, printable(name)));
  const DeepSeekKeys keys{file};
  refuse_what_is_not_built(keys);
  LatentConfig config{};
  config.attention = read_attention(keys);
  config.L = keys.size("block_count");
  config.T_max = keys.size("context_length");
  config.F = keys.size("feed_forward_length");
  // Some files leave the vocabulary's size out; the embedding's shape has it too.
  config.V =
      keys.has("vocab_size") ? keys.size("vocab_size") : file.tensor("token_embd.weight").shape[0];
  config.tied = !file.has_tensor("output.weight");
  config.dense = keys.size_or("leading_dense_block_count", 0);
  if (config.dense < config.L) read_experts(keys, config);
  // Each block has more tensors than one. A larger count is wrong, and lists would be long.
  if (config.L > file.tensors().size())
    keys.fail("block_count", fmt::format("at most the {} tensors", file.tensors().size()),
              double(config.L));
  try {
    expect_latent(config.attention);
    config.frequencies = read_rope(keys, config.attention);
    expect_latent_config(config);
  } catch (const std::invalid_argument& error) {
    throw std::runtime_error(fmt::format("{}: {}", file.name(), error.what()));
  }
  return config;
}

}  // namespace t2t
