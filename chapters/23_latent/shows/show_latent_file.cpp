#include "23_latent/shows/show_latent_file.hpp"

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
#include "23_latent/model/load_latent.hpp"
#include "linalg.hpp"
#include "program/print.hpp"
#include "utf8_start.hpp"

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

/// Greedy tokens after the prompt, up to one of `ends`, which is left out.
static std::vector<int> continued(const LatentModel& model, const std::vector<int>& prompt,
                                  std::size_t most, const std::vector<int>& ends) {
  LatentState state(model.config, prompt.size() + most);
  std::vector<int> more, next = prompt;
  Tensor<2> logits = empty(1, model.config.V);
  while (more.size() < most) {
    const Tensor<2> stream = latent_stream(next, model, state);
    matmul_bt(ConstMatrix(stream).rows_from(stream.shape(0) - 1, 1), model.output(), logits);
    next = {greedy(row(logits, 0))};
    if (std::ranges::find(ends, next[0]) != ends.end()) break;
    more.push_back(next[0]);
  }
  return more;
}

/// What is continued, and with which vocabulary, if the file has one that chapter 10 reads.
struct LatentPrompt {
  std::optional<Bpe> bpe;
  std::string why;  // there is no vocabulary
  std::string text;
  std::vector<int> ids;  // empty: there is nothing to continue
};

static LatentPrompt prompt_of(const Program& program, const LatentFileFlags& flags,
                              const GgufFile& file, const LatentConfig& config) {
  LatentPrompt prompt;
  try {
    prompt.bpe = read_tokenizer(file);
  } catch (const std::runtime_error& error) {
    if (program.given("prompt")) throw;
    prompt.why = error.what();
  }
  if (program.given("ids")) {
    prompt.ids = parse_ids(flags.ids, config.V);
  } else if (prompt.bpe) {
    if (prompt.bpe->size() > config.V)
      throw std::runtime_error(fmt::format("{}: {} tokens in its vocabulary, but V = {}",
                                           file.name(), prompt.bpe->size(), config.V));
    prompt.text = program.given("prompt") ? flags.prompt : "Once upon a time";
    prompt.ids = prompt.bpe->encode(prompt.text);
    if (const std::optional<int> first = prompt.bpe->first())
      prompt.ids.insert(prompt.ids.begin(), *first);
  } else {
    return prompt;
  }
  if (prompt.ids.empty() || prompt.ids.size() >= config.T_max)
    throw std::invalid_argument(fmt::format("the prompt: wanted 1 to {} tokens, got {}",
                                            config.T_max - 1, prompt.ids.size()));
  return prompt;
}

static void show_continuation(const LatentPrompt& prompt, const LatentModel& model,
                              std::size_t tokens) {
  print_section("Continued greedily");
  if (prompt.ids.empty()) {
    print_paragraph(fmt::format(
        "There is no text to continue, because of its vocabulary: {}. --ids 1,2,3 continues ids.",
        prompt.why));
    return;
  }
  const std::size_t most = std::min(tokens, model.config.T_max - prompt.ids.size());
  const std::vector<int> more =
      continued(model, prompt.ids, most, prompt.bpe ? prompt.bpe->ends() : std::vector<int>());
  fmt::print("ids   [{}]\nthen  [{}]\n", fmt::join(prompt.ids, ", "), fmt::join(more, ", "));
  if (!prompt.text.empty())
    fmt::print("\n{}\n", printable_lines(prompt.text + prompt.bpe->said(more)));
}

int show_latent_file(const Program& program, const LatentFileFlags& flags) {
  const GgufFile file = GgufFile::open(flags.model);
  // The prompt comes first: a model may take minutes to read.
  const LatentPrompt prompt = prompt_of(program, flags, file, read_latent_config(file));
  const LatentModel model =
      read_latent_model(file, flags.floats ? MakeWeight() : MakeWeight(packed_matrix));
  show_sizes(file, model);
  show_cache(model.config);
  show_continuation(prompt, model, flags.tokens);
  return 0;
}

}  // namespace t2t
