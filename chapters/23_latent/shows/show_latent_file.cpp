#include "23_latent/shows/show_latent_file.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <span>
#include <string>

#include "10_pretrained/model/architecture.hpp"
#include "12_quantization/packed/packed_weight.hpp"
#include "23_latent/model/load_latent.hpp"
#include "23_latent/shows/continue_file.hpp"
#include "linalg.hpp"
#include "program/print.hpp"

namespace t2t {

static void add_size(Table& table, const char* what, std::size_t size, const char* key) {
  table.add({what, with_commas(size), key});
}

static void add_attention(Table& table, const LatentConfig& config) {
  const auto& [C, H, N, R, Dv, K, Q, m, pairing, eps] = config.attention;
  add_size(table, "width C", C, "embedding_length");
  add_size(table, "blocks L", config.L, "block_count");
  add_size(table, "of which have one network", config.dense, "leading_dense_block_count");
  add_size(table, "heads H", H, "attention.head_count");
  add_size(table, "a head's channels without RoPE, N", N, "attention.key_length_mla, less R");
  add_size(table, "and with it, R", R, "rope.dimension_count");
  add_size(table, "a value's channels Dv", Dv, "attention.value_length_mla");
  add_size(table, "rank of the latent K", K, "attention.kv_lora_rank");
  add_size(table, "rank of the queries Q", Q, "attention.q_lora_rank; 0: none");
  table.add({"YaRN's factor of the scores, m²", fmt::format("{:.4f}", m * m),
             "rope.scaling.yarn_log_multiplier"});
}

static void add_experts(Table& table, const LatentConfig& config) {
  const GroupedRouting& routing = config.routing;
  const bool sigmoid = routing.router.scoring == Scoring::sigmoid;
  add_size(table, "experts E", config.E, "expert_count");
  add_size(table, "of which a token uses k", routing.router.k, "expert_used_count");
  add_size(table, "groups of experts", routing.groups, "expert_group_count");
  add_size(table, "of which a token uses", routing.open, "expert_group_used_count");
  table.add({"scores become", sigmoid ? "sigmoids" : "softmax", "expert_gating_func"});
  table.add({"factor of the weights", fmt::format("{}", routing.scale), "expert_weights_scale"});
  add_size(table, "width of an expert", config.F_expert, "expert_feed_forward_length");
  add_size(table, "width of the shared network", config.F_shared, "that times expert_shared_count");
}

static void show_sizes(const GgufFile& file, const LatentModel& model) {
  const LatentConfig& config = model.config;
  print_section("The file");
  print_paragraph(fmt::format("{}: {}", std::filesystem::path(file.name()).filename().string(),
                              model_name(file)));
  fmt::print("\n");
  Table table({"", ">", "deepseek2."});
  add_attention(table, config);
  if (config.dense < config.L) add_experts(table, config);
  add_size(table, "vocabulary V", config.V, "vocab_size");
  add_size(table, "longest sequence", config.T_max, "context_length");
  add_size(table, "parameters", parameter_count(model), "counted from these sizes");
  std::size_t stored = 0;
  for (const GgufTensor& tensor : file.tensors()) stored += tensor.size;
  add_size(table, "bytes of the file's tensors", stored, "counted from its directory");
  table.print();
}

static void show_cache(const LatentConfig& config) {
  const LatentSettings& s = config.attention;
  const std::size_t latent = latent_cache_bytes(config.L, 1, s, 2);
  const std::size_t heads = 2 * config.L * s.H * (s.query_width() + s.Dv);
  print_section("The cache, at 2 bytes per element");
  Table table({"it holds", "elements per token", ">bytes per token",
               fmt::format(">for {} tokens", with_commas(config.T_max))});
  const auto add = [&](const char* what, const std::string& formula, std::size_t bytes) {
    table.add({what, formula, with_commas(bytes), with_commas(bytes * config.T_max)});
  };
  add("latents and rotated keys", fmt::format("{}·({} + {})", config.L, s.K, s.R), latent);
  add("all heads' keys and values",
      fmt::format("{}·{}·({} + {} + {})", config.L, s.H, s.N, s.R, s.Dv), heads);
  table.print();
  fmt::print("\n");
  print_paragraph(
      fmt::format("The cache of latents is {:.1f} times smaller.", double(heads) / double(latent)));
}

int show_latent_file(const Program& program, const LatentFileFlags& flags) {
  const GgufFile file = GgufFile::open(flags.model);
  const LatentConfig config = read_latent_config(file);
  // The prompt comes first: a model may take minutes to read.
  const FilePrompt prompt =
      read_prompt(program, flags.prompt, flags.ids, file, config.V, config.T_max);
  const LatentModel model =
      read_latent_model(file, flags.floats ? MakeWeight() : MakeWeight(packed_matrix));
  show_sizes(file, model);
  show_cache(config);
  const std::size_t most = prompt.room(flags.tokens, config.T_max);
  std::optional<LatentState> state;
  show_continuation(prompt, config.V, most, [&](std::span<const int> ids, Matrix logits) {
    if (!state) state.emplace(config, ids.size() + most);
    const Tensor<2> stream = latent_stream(ids, model, *state);
    matmul_bt(ConstMatrix(stream).rows_from(stream.shape(0) - 1, 1), model.output(), logits);
  });
  return 0;
}

}  // namespace t2t
