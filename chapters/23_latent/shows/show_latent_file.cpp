#include "23_latent/shows/show_latent_file.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <vector>

#include "09_language_model/sampling.hpp"
#include "10_pretrained/model/tokenizer.hpp"
#include "10_pretrained/program/flags.hpp"
#include "12_quantization/packed/packed_weight.hpp"
#include "23_latent/model/load_latent.hpp"
#include "memory.hpp"
#include "program/print.hpp"

namespace t2t {

static std::string name_of(const GgufFile& file) {
  const char* key = "general.name";
  return file.metadata().has(key) ? printable(file.metadata().text(key)) : "without a name";
}

static void show_sizes(const GgufFile& file, const LatentModel& model) {
  const LatentConfig& config = model.config;
  const auto& [C, H, N, R, Dv, K, Q, m, pairing, eps] = config.attention;
  print_section("The file");
  print_paragraph(
      fmt::format("{}: {}", std::filesystem::path(file.name()).filename().string(), name_of(file)));
  fmt::print("\n");
  Table table({"", ">", "deepseek2."});
  const auto add = [&](const char* what, std::size_t size, const char* key) {
    table.add({what, with_commas(size), key});
  };
  add("width C", C, "embedding_length");
  add("blocks L", config.L, "block_count");
  add("of which have one network", config.dense, "leading_dense_block_count");
  add("heads H", H, "attention.head_count");
  add("a head's channels without RoPE, N", N, "attention.key_length_mla, less R");
  add("and with it, R", R, "rope.dimension_count");
  add("a value's channels Dv", Dv, "attention.value_length_mla");
  add("rank of the latent K", K, "attention.kv_lora_rank");
  add("rank of the queries Q", Q, "attention.q_lora_rank; 0: none");
  table.add({"YaRN's factor of the scores, m²", fmt::format("{:.4f}", m * m),
             "rope.scaling.yarn_log_multiplier"});
  if (config.dense < config.L) {
    const GroupedRouting& routing = config.routing;
    const bool sigmoid = routing.router.scoring == Scoring::sigmoid;
    add("experts E", config.E, "expert_count");
    add("of which a token uses k", routing.router.k, "expert_used_count");
    add("groups of experts", routing.groups, "expert_group_count");
    add("of which a token uses", routing.open, "expert_group_used_count");
    table.add({"scores become", sigmoid ? "sigmoids" : "softmax", "expert_gating_func"});
    table.add({"factor of the weights", fmt::format("{}", routing.scale), "expert_weights_scale"});
    add("width of an expert", config.F_expert, "expert_feed_forward_length");
    add("width of the shared network", config.F_shared, "that times expert_shared_count");
  }
  add("vocabulary V", config.V, "vocab_size");
  add("longest sequence", config.T_max, "context_length");
  const LatentSizes sizes = sizes_of(model);
  add("parameters", sizes.parameters, "counted from these sizes");
  table.print();
  fmt::print("\n");
  print_paragraph(fmt::format("In memory the weights are {}.", bytes_text(double(sizes.bytes))));
}

static void show_cache(const LatentConfig& config) {
  const LatentSettings& s = config.attention;
  const std::size_t latent = latent_cache_bytes(config.L, 1, s, 2);
  const std::size_t heads = 2 * config.L * s.H * (s.query_width() + s.Dv);
  print_section("The cache, at 2 bytes per element");
  Table table({"it holds", "elements per token", ">bytes per token",
               fmt::format(">{} tokens", with_commas(config.T_max))});
  const auto add = [&](const char* what, const std::string& formula, std::size_t bytes) {
    table.add(
        {what, formula, with_commas(bytes), bytes_text(double(bytes) * double(config.T_max))});
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

/// The tokenizer, or why there is none.
static std::optional<Bpe> tokenizer_of(const GgufFile& file, std::string& why) {
  try {
    return read_tokenizer(file);
  } catch (const std::runtime_error& error) {
    why = error.what();
    return std::nullopt;
  }
}

static void show_continuation(const Program& program, const LatentFileFlags& flags,
                              const GgufFile& file, const LatentModel& model) {
  std::string why;
  const std::optional<Bpe> bpe = tokenizer_of(file, why);
  if (program.given("prompt") && !bpe) throw std::runtime_error("--prompt: " + why);
  print_section("Continued greedily");
  if (!program.given("ids") && !bpe) {
    print_paragraph(
        fmt::format("There is no text to continue, because of its vocabulary: {}. "
                    "--ids 1,2,3 continues ids.",
                    why));
    return;
  }
  const std::string text = program.given("prompt") ? flags.prompt : "Once upon a time";
  std::vector<int> ids;
  if (program.given("ids")) {
    ids = parse_ids(flags.ids, model.config.V);
  } else {
    if (bpe->size() > model.config.V)
      throw std::runtime_error(fmt::format("{}: {} tokens in its vocabulary, but V = {}",
                                           file.name(), bpe->size(), model.config.V));
    ids = bpe->encode(text);
    if (const std::optional<int> first = bpe->first()) ids.insert(ids.begin(), *first);
  }
  const std::size_t T_max = model.config.T_max;
  if (ids.empty() || ids.size() >= T_max)
    throw std::invalid_argument(
        fmt::format("the prompt: wanted 1 to {} tokens, got {}", T_max - 1, ids.size()));
  const std::size_t most = std::min(flags.tokens, T_max - ids.size());
  const std::vector<int> more = continued(model, ids, most, bpe ? bpe->ends() : std::vector<int>());
  fmt::print("ids   [{}]\nthen  [{}]\n", fmt::join(ids, ", "), fmt::join(more, ", "));
  if (bpe && !program.given("ids")) fmt::print("\n{}\n", printable_lines(text + bpe->said(more)));
}

int show_latent_file(const Program& program, const LatentFileFlags& flags) {
  const GgufFile file = GgufFile::open(flags.model);
  const LatentModel model =
      read_latent_model(file, flags.floats ? MakeWeight() : MakeWeight(packed_matrix));
  show_sizes(file, model);
  show_cache(model.config);
  show_continuation(program, flags, file, model);
  return 0;
}

}  // namespace t2t
