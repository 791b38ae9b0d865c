#include "10_pretrained/load_model.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <set>
#include <stdexcept>
#include <type_traits>

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

  Config config{};
  BlockSettings& block = config.block;
  block.C = size_of(file, "llama.embedding_length");
  block.H = size_of(file, "llama.attention.head_count");
  block.G = size_of(file, "llama.attention.head_count_kv", block.H);
  block.D = size_of(file, "llama.attention.key_length", block.C / block.H);
  block.F = size_of(file, "llama.feed_forward_length");
  config.L = size_of(file, "llama.block_count");
  config.T_max = size_of(file, "llama.context_length");
  // Some writers leave the vocabulary's size out: the table has it.
  config.V = size_of(file, "llama.vocab_size", file.tensor("token_embd.weight").shape[0]);

  config.tied = !file.has_tensor("output.weight");
  block.pairing = Pairing::neighbours;
  block.theta = float(file.metadata().real("llama.rope.freq_base", 10000));
  block.eps = float(file.metadata().real("llama.attention.layer_norm_rms_epsilon"));
  expect_plain_rope(file, block.D);
  expect_config(config);
  // Each block is nine tensors: a count beyond that is nobody's, and would make a long list.
  if (config.L > file.tensors().size())
    throw std::runtime_error(fmt::format("{}: llama.block_count: {}, but there are {} tensors",
                                         file.name(), config.L, file.tensors().size()));
  return config;
}

/// A tensor's name in the file: of what the llama architecture has.
static std::string name_in_file(const TensorInfo& info) {
  static constexpr std::pair<std::string_view, std::string_view> names[] = {
      {"embedding", "token_embd.weight"},
      {"attention_norm.gain", "attn_norm.weight"},
      {"w_q", "attn_q.weight"},
      {"w_k", "attn_k.weight"},
      {"w_v", "attn_v.weight"},
      {"w_o", "attn_output.weight"},
      {"feed_forward_norm.gain", "ffn_norm.weight"},
      {"w_gate", "ffn_gate.weight"},
      {"w_up", "ffn_up.weight"},
      {"w_down", "ffn_down.weight"},
      {"final_norm.gain", "output_norm.weight"},
      {"head", "output.weight"}};
  const auto found =
      std::ranges::find(names, info.name, &std::pair<std::string_view, std::string_view>::first);
  if (found == std::end(names))
    throw std::invalid_argument(
        fmt::format("{}: the llama architecture has no such tensor", info.name));
  return info.layer ? fmt::format("blk.{}.{}", *info.layer, found->second)
                    : std::string(found->second);
}

std::vector<NamedShape> tensor_names(const Config& config) {
  ModelWeights none;
  none.blocks.resize(config.L);
  std::vector<NamedShape> names;
  for_each_tensor(none, config, [&]<class Stored>(const TensorInfo& info, const Stored&) {
    if (info.size() == 0) return;
    names.push_back({name_in_file(info), {info.rows}});
    if (std::is_same_v<Stored, Weight>) names.back().shape.push_back(info.cols);
  });
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
  const std::vector<NamedShape> names = tensor_names(config);
  std::set<std::string, std::less<>> wanted;
  for (const NamedShape& tensor : names) {
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

  for (const auto& [name, shape] : names) {
    if (shape.size() == 1)
      file.tensor(name, {shape[0]});
    else
      file.tensor(name, {shape[0], shape[1]});
  }
}

static void read_tensor(const GgufFile& file, const TensorInfo& info, const MakeWeight&,
                        Tensor<1>& x) {
  x = file.vector(name_in_file(info), info.rows);
}
static void read_tensor(const GgufFile& file, const TensorInfo& info, const MakeWeight& make,
                        Weight& w) {
  const std::string name = name_in_file(info);
  w = make ? make(file.tensor(name, {info.rows, info.cols}), info)
           : Weight(file.matrix(name, info.rows, info.cols));
}

ModelWeights read_weights(const GgufFile& file, const Config& config, const MakeWeight& make) {
  expect_tensors(file, config);
  ModelWeights weights;
  weights.blocks.resize(config.L);
  for_each_tensor(weights, config, [&](const TensorInfo& info, auto& tensor) {
    if (info.size() > 0) read_tensor(file, info, make, tensor);
  });
  return weights;
}

Model read_model(const GgufFile& file, const MakeWeight& make) {
  const Config config = read_config(file);
  return Model(config, read_weights(file, config, make));
}

}  // namespace t2t
