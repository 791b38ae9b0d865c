#include "10_pretrained/load_model.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <set>
#include <stdexcept>

#include "10_pretrained/utf8.hpp"

namespace t2t {

/// A size among the metadata: at least 1, and no larger than its use can ever be.
static std::size_t size_of(const GgufFile& file, const std::string& key) {
  const std::int64_t value = file.metadata().integer(key);
  if (value < 1 || value > std::numeric_limits<int>::max())
    throw std::runtime_error(fmt::format("{}: {}: wanted 1 to {}, got {}", file.name(), key,
                                         std::numeric_limits<int>::max(), value));
  return std::size_t(value);
}
static std::size_t size_of(const GgufFile& file, const std::string& key, std::size_t fallback) {
  return file.metadata().has(key) ? size_of(file, key) : fallback;
}

static void expect_plain_rope(const GgufFile& file, std::size_t D) {
  const std::size_t turned = size_of(file, "llama.rope.dimension_count", D);
  if (turned != D)
    throw std::runtime_error(fmt::format("{}: llama.rope.dimension_count: wanted D = {}, got {}",
                                         file.name(), D, turned));
  const char* type = "llama.rope.scaling.type";
  if (file.metadata().has(type) && file.metadata().text(type) != "none")
    throw std::runtime_error(fmt::format("{}: {}: wanted none, got {}", file.name(), type,
                                         printable(file.metadata().text(type))));
  // Without a type these mean linear scaling; 0 and 1 mean none.
  for (const char* key : {"llama.rope.scaling.factor", "llama.rope.scale_linear"}) {
    const double factor = file.metadata().real(key, 1);
    if (!file.metadata().has(type) && factor != 0 && factor != 1)
      throw std::runtime_error(fmt::format("{}: {}: wanted 1, got {}", file.name(), key, factor));
  }
}

Config read_config(const GgufFile& file) {
  const std::string_view architecture = file.metadata().text("general.architecture");
  if (architecture != "llama")
    throw std::runtime_error(fmt::format("{}: general.architecture: wanted llama, got {}",
                                         file.name(), printable(architecture)));

  Config config;
  config.C = size_of(file, "llama.embedding_length");
  config.L = size_of(file, "llama.block_count");
  config.H = size_of(file, "llama.attention.head_count");
  config.G = size_of(file, "llama.attention.head_count_kv", config.H);
  config.D = size_of(file, "llama.attention.key_length", config.C / config.H);
  config.F = size_of(file, "llama.feed_forward_length");
  config.T_max = size_of(file, "llama.context_length");
  // Some writers leave the vocabulary's size out: the table has it.
  config.V = size_of(file, "llama.vocab_size", file.tensor("token_embd.weight").shape[0]);

  config.tied = !file.has_tensor("output.weight");
  config.pairing = Pairing::neighbours;
  config.theta = float(file.metadata().real("llama.rope.freq_base", 10000));
  config.eps = float(file.metadata().real("llama.attention.layer_norm_rms_epsilon"));
  expect_plain_rope(file, config.D);
  expect_config(config);
  // Each block is nine tensors: a count beyond that is nobody's, and would make a long list.
  if (config.L > file.tensors().size())
    throw std::runtime_error(fmt::format("{}: llama.block_count: {}, but there are {} tensors",
                                         file.name(), config.L, file.tensors().size()));
  return config;
}

std::vector<NamedShape> tensor_names(const Config& config) {
  const std::size_t C = config.C, F = config.F, V = config.V;
  const std::size_t q = config.H * config.D, kv = config.G * config.D;
  std::vector<NamedShape> names = {{"token_embd.weight", {V, C}}};
  for (std::size_t l = 0; l < config.L; ++l)
    for (const auto& [part, shape] : std::vector<NamedShape>{{"attn_norm", {C}},
                                                             {"attn_q", {q, C}},
                                                             {"attn_k", {kv, C}},
                                                             {"attn_v", {kv, C}},
                                                             {"attn_output", {C, q}},
                                                             {"ffn_norm", {C}},
                                                             {"ffn_gate", {F, C}},
                                                             {"ffn_up", {F, C}},
                                                             {"ffn_down", {C, F}}})
      names.push_back({fmt::format("blk.{}.{}.weight", l, part), shape});
  names.push_back({"output_norm.weight", {C}});
  if (!config.tied) names.push_back({"output.weight", {V, C}});
  return names;
}

/// "a, b, c and 4 more"
static std::string listed(const std::vector<std::string>& names) {
  const std::size_t shown = std::min<std::size_t>(names.size(), 5);
  const std::span first = std::span(names).first(shown);
  return fmt::format("{}{}", fmt::join(first, ", "),
                     shown < names.size() ? fmt::format(" and {} more", names.size() - shown) : "");
}

void expect_tensors(const GgufFile& file, const Config& config) {
  std::vector<std::string> missing, surplus;
  std::set<std::string, std::less<>> wanted;
  for (const NamedShape& tensor : tensor_names(config)) {
    wanted.insert(tensor.name);
    if (!file.has_tensor(tensor.name)) missing.push_back(tensor.name);
  }
  for (const GgufTensor& tensor : file.tensors())
    if (!wanted.contains(tensor.name)) surplus.push_back(printable(tensor.name));
  std::vector<std::string> reasons;
  if (!missing.empty()) reasons.push_back("missing tensors: " + listed(missing));
  if (!surplus.empty()) reasons.push_back("surplus tensors: " + listed(surplus));
  if (!reasons.empty())
    throw std::runtime_error(fmt::format("{}: {}", file.name(), fmt::join(reasons, "; ")));

  for (const auto& [name, shape] : tensor_names(config)) {
    if (shape.size() == 1)
      file.tensor(name, {shape[0]});
    else
      file.tensor(name, {shape[0], shape[1]});
  }
}

static BlockWeights read_block(const GgufFile& file, const Config& config, std::size_t l) {
  const std::size_t C = config.C, F = config.F;
  const std::size_t q = config.H * config.D, kv = config.G * config.D;
  const auto name = [l](const char* part) { return fmt::format("blk.{}.{}.weight", l, part); };
  BlockWeights weights;
  weights.attention_norm.gain = file.vector(name("attn_norm"), C);
  weights.w_q = file.matrix(name("attn_q"), q, C);
  weights.w_k = file.matrix(name("attn_k"), kv, C);
  weights.w_v = file.matrix(name("attn_v"), kv, C);
  weights.w_o = file.matrix(name("attn_output"), C, q);
  weights.feed_forward_norm.gain = file.vector(name("ffn_norm"), C);
  weights.feed_forward.w_gate = file.matrix(name("ffn_gate"), F, C);
  weights.feed_forward.w_up = file.matrix(name("ffn_up"), F, C);
  weights.feed_forward.w_down = file.matrix(name("ffn_down"), C, F);
  return weights;
}

ModelWeights read_weights(const GgufFile& file, const Config& config) {
  expect_tensors(file, config);
  ModelWeights weights;
  weights.embedding = file.matrix("token_embd.weight", config.V, config.C);
  for (std::size_t l = 0; l < config.L; ++l) weights.blocks.push_back(read_block(file, config, l));
  weights.final_norm.gain = file.vector("output_norm.weight", config.C);
  if (!config.tied) weights.head = file.matrix("output.weight", config.V, config.C);
  expect_model(weights, config);
  return weights;
}

}  // namespace t2t
