#include "10_pretrained/model/save_model.hpp"

#include <fmt/format.h>

#include <limits>
#include <map>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "10_pretrained/model/load_model.hpp"
#include "files/files.hpp"
#include "shapes.hpp"

namespace t2t {

/// Refuses what would be read back as another model: the file names an architecture and its sizes,
/// and every other choice follows from these.
static void expect_expressible(const Config& config) {
  expect_config(config);
  expect_only(differences_from_llama(config),
              {Difference::head_norms, Difference::biases_of_qkv, Difference::biases_of_all,
               Difference::window, Difference::halves, Difference::experts, Difference::tied},
              "the model to save");
  architecture_name(config.block);
}

static void expect_floats(const TensorInfo&, const Tensor<1>&) {}
static void expect_floats(const TensorInfo& info, const Weight& w) {
  if (w.is_packed())
    throw std::invalid_argument(full_name(info) + ": wanted floats, got packed numbers");
}

static void expect_fits(const ModelWeights& weights, const Config& config) {
  expect(weights.blocks.size() == config.L, "blocks", fmt::format("L = {}", config.L),
         weights.blocks.size());
  for (std::size_t l = 0; l < config.L; ++l)
    expect(weights.blocks[l].experts.size() == settings_of(config, l).experts,
           fmt::format("layer {}: experts", l),
           fmt::format("E = {}", settings_of(config, l).experts), weights.blocks[l].experts.size());
  for_each_tensor(weights, config, [](const TensorInfo& info, const auto& tensor) {
    expect_fits(info, tensor);
    expect_floats(info, tensor);
  });
}

/// Refuses a tokenizer that could not be read back.
static void expect_tokenizer(const BpeTables& tokenizer, std::size_t V) {
  expect(tokenizer.tokens.size() == V, "tokens", fmt::format("V = {}", V), tokenizer.tokens.size());
  for (std::size_t i = 0; i < V; ++i) expect_utf8(fmt::format("token {}", i), tokenizer.tokens[i]);
  Bpe{tokenizer};
}

static void put_config(GgufBytes& file, const Config& config) {
  const BlockSettings& block = config.block;
  const std::string architecture(architecture_name(block));
  const auto key = [&](const char* name) { return architecture + "." + name; };
  const auto size = [&](const char* name, std::size_t n) {
    constexpr std::size_t most = std::numeric_limits<int>::max();
    expect(n >= 1 && n <= most, key(name), fmt::format("1 to {}", most), n);
    file.entry(key(name), std::uint32_t(n));
  };
  size("embedding_length", block.C), size("block_count", config.L);
  size("attention.head_count", block.H), size("attention.head_count_kv", block.G);
  size("attention.key_length", block.D), size("attention.value_length", block.D);
  size("feed_forward_length", block.F), size("vocab_size", config.V);
  size("context_length", config.T_max);
  size("rope.dimension_count", block.D);
  if (block.window > 0) size("attention.sliding_window", block.window);
  if (block.experts > 0) {
    size("expert_count", block.experts), size("expert_used_count", block.chosen);
    size("expert_feed_forward_length", block.F);
  }
  file.entry(key("rope.freq_base"), block.theta);
  file.entry(key("attention.layer_norm_rms_epsilon"), block.eps);
}

static void put_tokenizer(GgufBytes& file, const BpeTables& tokenizer) {
  std::vector<std::int32_t> kinds;  // [V]
  for (const TokenKind kind : tokenizer.kinds) kinds.push_back(std::int32_t(kind));
  file.entry("tokenizer.ggml.model", "gpt2");
  file.entry("tokenizer.ggml.pre", tokenizer.pre_tokenizer);
  file.entry("tokenizer.ggml.tokens", tokenizer.tokens);
  file.entry("tokenizer.ggml.token_type", kinds);
  file.entry("tokenizer.ggml.merges", tokenizer.merges);
  const auto id = [&](const char* key, std::optional<int> token) {
    if (token) file.entry(key, std::uint32_t(*token));
  };
  id("tokenizer.ggml.bos_token_id", tokenizer.bos);
  id("tokenizer.ggml.eos_token_id", tokenizer.eos);
  id("tokenizer.ggml.eot_token_id", tokenizer.eot);
  id("tokenizer.ggml.eom_token_id", tokenizer.eom);
  if (tokenizer.bos_first) file.entry("tokenizer.ggml.add_bos_token", *tokenizer.bos_first);
}

/// The file's entries.
static GgufBytes entries_of(const Config& config, const BpeTables& tokenizer, std::string_view name,
                            std::string_view chat_template) {
  GgufBytes entries;
  entries.entry("general.architecture", architecture_name(config.block));
  entries.entry("general.name", name).entry("general.file_type", 0u);  // all tensors are F32
  put_config(entries, config);
  put_tokenizer(entries, tokenizer);
  if (!chat_template.empty()) entries.entry("tokenizer.chat_template", chat_template);
  return entries;
}

std::vector<StoredTensor> stored_tensors(const ModelWeights& weights, const Config& config) {
  std::vector<StoredTensor> tensors;
  for (const NamedShape& each : tensor_names(config))
    tensors.push_back({each.name, each.shape, {}});
  std::map<std::string, StoredTensor*, std::less<>> by_name;
  for (StoredTensor& tensor : tensors) by_name[tensor.name] = &tensor;
  for_each_tensor(weights, config, [&]<class Stored>(const TensorInfo& info, const Stored& tensor) {
    if (info.size() == 0) return;
    std::vector<ConstRow>& pieces = by_name.at(name_in_file(info))->pieces;
    if constexpr (std::is_same_v<Stored, Weight>)
      pieces.push_back({tensor.floats().data(), tensor.floats().size()});
    else
      pieces.push_back(row(tensor));
  });
  return tensors;
}

/// Checks everything that can be wrong, and returns the file's entries.
static GgufBytes checked_entries(const Config& config, const ModelWeights& weights,
                                 const BpeTables& tokenizer, std::string_view name,
                                 std::string_view chat_template) {
  expect_expressible(config);
  expect_fits(weights, config);
  expect_tokenizer(tokenizer, config.V);
  expect_utf8("name", name);
  expect_utf8("chat_template", chat_template);
  return entries_of(config, tokenizer, name, chat_template);
}

void save_model(const std::filesystem::path& path, const Config& config,
                const ModelWeights& weights, const BpeTables& tokenizer, std::string_view name,
                std::string_view chat_template) {
  const GgufBytes entries = checked_entries(config, weights, tokenizer, name, chat_template);
  save_gguf(path, entries, stored_tensors(weights, config));
}

std::vector<std::uint8_t> model_bytes(const Config& config, const ModelWeights& weights,
                                      const BpeTables& tokenizer, std::string_view name,
                                      std::string_view chat_template) {
  const GgufBytes entries = checked_entries(config, weights, tokenizer, name, chat_template);
  return gguf_bytes(entries, stored_tensors(weights, config));
}

}  // namespace t2t
