#include "24_delta_rule/shows/show_qwen3_next.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <vector>

#include "09_language_model/sampling.hpp"
#include "10_pretrained/model/architecture.hpp"
#include "10_pretrained/model/tokenizer.hpp"
#include "10_pretrained/program/flags.hpp"
#include "12_quantization/packed/packed_weight.hpp"
#include "24_delta_rule/qwen3_next/load_qwen3_next.hpp"
#include "linalg.hpp"
#include "program/print.hpp"
#include "utf8_start.hpp"

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

/// Greedy tokens after the prompt, up to one of `ends`, which is left out.
static std::vector<int> continued(const Qwen3Next& model, const std::vector<int>& prompt,
                                  std::size_t most, const std::vector<int>& ends) {
  Qwen3NextState state(model.config, prompt.size() + most);
  std::vector<int> more, next = prompt;
  Tensor<2> logits = empty(1, model.config.V);
  while (more.size() < most) {
    const Tensor<2> stream = qwen3_next_stream(next, model, state);
    matmul_bt(ConstMatrix(stream).rows_from(stream.shape(0) - 1, 1), model.output(), logits);
    next = {greedy(row(logits, 0))};
    if (std::ranges::find(ends, next[0]) != ends.end()) break;
    more.push_back(next[0]);
  }
  return more;
}

/// What is continued; no ids if nothing is. With a text, the file's vocabulary too.
struct Qwen3NextPrompt {
  std::optional<Bpe> bpe;
  std::vector<int> ids;
};

static Qwen3NextPrompt prompt_of(const Program& program, const Qwen3NextFlags& flags,
                                 const GgufFile& file, const Qwen3NextConfig& config) {
  Qwen3NextPrompt prompt;
  if (program.given("prompt")) {
    prompt.bpe = read_tokenizer(file);
    prompt.ids = prompt.bpe->encode(flags.prompt);
  } else if (program.given("ids")) {
    prompt.ids = parse_ids(flags.ids, config.V);
  } else {
    return prompt;
  }
  if (prompt.ids.empty() || prompt.ids.size() >= config.T_max)
    throw std::invalid_argument(fmt::format("the prompt: wanted 1 to {} tokens, got {}",
                                            config.T_max - 1, prompt.ids.size()));
  return prompt;
}

static void show_more(const Qwen3NextPrompt& prompt, const Qwen3NextFlags& flags,
                      const Qwen3Next& model) {
  const std::size_t most = std::min(flags.tokens, model.config.T_max - prompt.ids.size());
  const std::vector<int> more =
      continued(model, prompt.ids, most, prompt.bpe ? prompt.bpe->ends() : std::vector<int>());
  print_section("Continued greedily");
  fmt::print("ids   [{}]\nthen  [{}]\n", fmt::join(prompt.ids, ", "), fmt::join(more, ", "));
  if (prompt.bpe) fmt::print("\n{}\n", printable_lines(flags.prompt + prompt.bpe->said(more)));
}

int show_qwen3_next(const Program& program, const Qwen3NextFlags& flags) {
  const GgufFile file = GgufFile::open(flags.model);
  // The prompt comes first: a model may take minutes to read.
  const Qwen3NextPrompt prompt = prompt_of(program, flags, file, read_qwen3_next_config(file));
  const Qwen3Next model = read_qwen3_next(file, packed_matrix);
  show_sizes(file, model);
  show_kept(model.config);
  if (!prompt.ids.empty()) show_more(prompt, flags, model);
  return 0;
}

}  // namespace t2t
