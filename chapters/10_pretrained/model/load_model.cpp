#include "10_pretrained/model/load_model.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <stdexcept>
#include <type_traits>

#include "09_language_model/accounts.hpp"
#include "10_pretrained/tokenizer/utf8.hpp"
#include "memory.hpp"

namespace t2t {

std::string name_in_file(const TensorInfo& info) {
  static constexpr std::pair<std::string_view, std::string_view> names[] = {
      {"embedding", "token_embd.weight"},
      {"attention_norm.gain", "attn_norm.weight"},
      {"w_q", "attn_q.weight"},
      {"w_k", "attn_k.weight"},
      {"w_v", "attn_v.weight"},
      {"b_q", "attn_q.bias"},
      {"b_k", "attn_k.bias"},
      {"b_v", "attn_v.bias"},
      {"q_norm.gain", "attn_q_norm.weight"},
      {"k_norm.gain", "attn_k_norm.weight"},
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
        fmt::format("{}: no architecture that is read here has such a tensor", info.name));
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
  if (!config.block.frequencies.empty())
    wanted.insert("rope_freqs.weight");  // read with the config
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
  const GgufTensor& tensor = file.tensor(name, {info.rows, info.cols});
  w = make ? make(tensor, info) : Weight(file.matrix(name, info.rows, info.cols));
  file.forget(tensor);
}

ModelWeights read_weights(const GgufFile& file, const Config& config, const MakeWeight& make) {
  expect_tensors(file, config);
  if (!make)
    expect_memory(sizeof(float) * double(total(count_parameters(config))), file.name(),
                  "wanted a smaller model");
  ModelWeights weights;
  weights.blocks.resize(config.L);
  for_each_tensor(weights, config, [&](const TensorInfo& info, auto& tensor) {
    if (info.size() > 0) read_tensor(file, info, make, tensor);
  });
  file.expect_whole();
  return weights;
}

Model read_model(const GgufFile& file, const MakeWeight& make) {
  const Config config = read_config(file);
  return Model(config, read_weights(file, config, make));
}

}  // namespace t2t
