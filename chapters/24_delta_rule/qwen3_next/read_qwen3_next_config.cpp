// The metadata of load_qwen3_next.hpp.
#include <fmt/format.h>

#include <stdexcept>
#include <tuple>

#include "10_pretrained/file/file_values.hpp"
#include "24_delta_rule/qwen3_next/load_qwen3_next.hpp"

namespace t2t {

/// Keys that would change the computation.
static void refuse_what_is_not_built(const GgufFile& file, const FileValues& values) {
  const std::string scaling = values.text("rope.scaling.type", "none");
  if (scaling != "none") values.fail("rope.scaling.type", "wanted none, got " + scaling);
  if (const double scale = values.number("expert_weights_scale", 1); scale != 1)
    values.fail("expert_weights_scale", fmt::format("wanted 1, got {}", scale));
  if (!file.metadata().truth(values.full("expert_weights_norm"), true))
    values.fail("expert_weights_norm", "wanted true, got false");
  if (values.has("attention.recurrent_layers"))
    values.fail("attention.recurrent_layers", "wanted full_attention_interval instead of a list");
}

// [config]
static DeltaLayerSettings read_delta_settings(const FileValues& values, std::size_t C, float eps) {
  DeltaLayerSettings delta{};
  delta.C = C, delta.eps = eps;
  delta.H = values.size("ssm.time_step_rank");
  delta.G = values.size("ssm.group_count");
  delta.D = values.size("ssm.state_size");
  delta.W = values.size("ssm.conv_kernel");
  const std::size_t inner = values.size("ssm.inner_size");  // H·Dv
  if (inner % delta.H != 0)
    values.fail("ssm.inner_size", fmt::format("wanted a multiple of {}, got {}", delta.H, inner));
  delta.Dv = inner / delta.H;
  return delta;
}

static Qwen3NextConfig read_sizes(const GgufFile& file, const FileValues& values) {
  Qwen3NextConfig config{};
  GatedAttentionSettings& attention = config.attention;
  std::tie(attention.C, attention.H, attention.G, attention.D) = values.head_sizes();
  values.expect_width_of_a_head("attention.value_length", attention.D);
  attention.R = values.size("rope.dimension_count");
  attention.eps = float(values.number("attention.layer_norm_rms_epsilon"));
  config.theta = float(values.number("rope.freq_base", 10000));
  config.delta = read_delta_settings(values, attention.C, attention.eps);
  config.L = values.size("block_count");
  config.V = values.vocabulary();
  config.T_max = values.size("context_length");
  config.every = values.size("full_attention_interval", 4);
  config.E = values.size("expert_count");
  config.router.k = values.size("expert_used_count");
  config.F = values.size("expert_feed_forward_length");
  config.F_shared = values.size("expert_shared_feed_forward_length");
  config.tied = !file.has_tensor("output.weight");
  return config;
}
// [/config]

Qwen3NextConfig read_qwen3_next_config(const GgufFile& file) {
  const FileValues values(file, "qwen3next");
  refuse_what_is_not_built(file, values);
  const Qwen3NextConfig config = read_sizes(file, values);
  values.expect_blocks(config.L);
  try {
    expect_qwen3_next_config(config);
  } catch (const std::invalid_argument& error) {
    throw std::runtime_error(fmt::format("{}: {}", file.name(), error.what()));
  }
  return config;
}

}  // namespace t2t
