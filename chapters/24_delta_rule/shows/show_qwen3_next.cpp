#include "24_delta_rule/shows/show_qwen3_next.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <span>
#include <string>

#include "10_pretrained/model/architecture.hpp"
#include "12_quantization/packed/packed_weight.hpp"
#include "23_latent/shows/continue_file.hpp"
#include "24_delta_rule/qwen3_next/load_qwen3_next.hpp"
#include "linalg.hpp"
#include "program/print.hpp"

namespace t2t {

static void show_sizes(const GgufFile& file, const Qwen3Next& model) {
  const Qwen3NextConfig& config = model.config;
  const GatedAttentionSettings& attention = config.attention;
  const DeltaLayerSettings& delta = config.delta;
  print_section("The file");
  print_paragraph(fmt::format("{}: {}", std::filesystem::path(file.name()).filename().string(),
                              model_name(file)));
  fmt::print("\n");
  Table table({"", ">", "qwen3next."});
  const auto add = [&](const char* what, std::size_t size, const char* key) {
    table.add({what, with_commas(size), key});
  };
  add("width C", attention.C, "embedding_length");
  add("blocks L", config.L, "block_count");
  add("of which attend", config.attention_layers(), "L / full_attention_interval");
  add("their query heads H", attention.H, "attention.head_count");
  add("their key and value heads G", attention.G, "attention.head_count_kv");
  add("a head's width D", attention.D, "attention.key_length");
  add("of which RoPE rotates R", attention.R, "rope.dimension_count");
  add("value heads of the others, H", delta.H, "ssm.time_step_rank");
  add("their query and key heads G", delta.G, "ssm.group_count");
  add("width of a key D", delta.D, "ssm.state_size");
  add("width of a value Dv", delta.Dv, "ssm.inner_size / H");
  add("tokens of the convolution W", delta.W, "ssm.conv_kernel");
  add("experts E", config.E, "expert_count");
  add("of which a token uses k", config.router.k, "expert_used_count");
  add("width of an expert", config.F, "expert_feed_forward_length");
  add("width of the shared network", config.F_shared, "expert_shared_feed_forward_length");
  add("vocabulary V", config.V, "vocab_size");
  add("longest sequence", config.T_max, "context_length");
  add("parameters", parameter_count(model), "counted from its tensors");
  table.print();
}

static void show_kept(const Qwen3NextConfig& config) {
  const DeltaLayerSettings& d = config.delta;
  const GatedAttentionSettings& a = config.attention;
  const std::size_t states = config.L - config.attention_layers();
  print_section("What it keeps of a sequence, in floats");
  Table table({"it holds", "elements", ">bytes"});
  table.add({"states", fmt::format("{}·{}·{}·{}", states, d.H, d.D, d.Dv),
             with_commas(states * d.H * d.D * d.Dv * sizeof(float))});
  table.add({"rows for convolutions", fmt::format("{}·{}·{}", states, d.W - 1, d.channels()),
             with_commas(states * (d.W - 1) * d.channels() * sizeof(float))});
  const auto add_cache = [&](const std::string& what, std::size_t S) {
    table.add({what, fmt::format("{}·2·{}·{}·{}", config.attention_layers(), a.G, a.D, S),
               with_commas(qwen3_next_cache_bytes(config, S))});
  };
  add_cache("keys and values of a token", 1);
  add_cache(fmt::format("and of {} tokens", with_commas(config.T_max)), config.T_max);
  table.print();
}

int show_qwen3_next(const Program& program, const Qwen3NextFlags& flags) {
  const GgufFile file = GgufFile::open(flags.model);
  const Qwen3NextConfig config = read_qwen3_next_config(file);
  // The prompt comes first: a model may take minutes to read.
  const bool continues = program.given("prompt") || program.given("ids");
  const FilePrompt prompt =
      continues ? read_prompt(program, flags.prompt, flags.ids, file, config.V, config.T_max)
                : FilePrompt();
  const Qwen3Next model = read_qwen3_next(file, packed_matrix);
  show_sizes(file, model);
  show_kept(config);
  if (!continues) return 0;
  const std::size_t most = prompt.room(flags.tokens, config.T_max);
  Qwen3NextState state(config, prompt.ids.size() + most);
  show_continuation(prompt, config.V, most, [&](std::span<const int> ids, Matrix logits) {
    const Tensor<2> stream = qwen3_next_stream(ids, model, state);
    matmul_bt(ConstMatrix(stream).rows_from(stream.shape(0) - 1, 1), model.output(), logits);
  });
  return 0;
}

}  // namespace t2t
