#include "10_pretrained/model/load_model.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <stdexcept>
#include <type_traits>

#include "09_language_model/accounts/accounts.hpp"
#include "10_pretrained/tokenizer/utf8.hpp"
#include "memory.hpp"
#include "tensor.hpp"

namespace t2t {

std::string name_in_file(const TensorInfo& info) {
  using Named = std::pair<std::string_view, std::string_view>;  // here, and in a file
  static constexpr Named names[] = {{"embedding", "token_embd.weight"},
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
                                    {"post_attention_norm.gain", "post_attention_norm.weight"},
                                    {"feed_forward_norm.gain", "ffn_norm.weight"},
                                    {"post_feed_forward_norm.gain", "post_ffw_norm.weight"},
                                    {"w_gate", "ffn_gate.weight"},
                                    {"w_up", "ffn_up.weight"},
                                    {"w_down", "ffn_down.weight"},
                                    {"router", "ffn_gate_inp.weight"},
                                    {"shared_gate", "ffn_gate_inp_shexp.weight"},
                                    {"final_norm.gain", "output_norm.weight"},
                                    {"head", "output.weight"}};
  // All experts of a block are one tensor of the file, [E, rows, cols].
  static constexpr Named names_of_experts[] = {{"w_gate", "ffn_gate_exps.weight"},
                                               {"w_up", "ffn_up_exps.weight"},
                                               {"w_down", "ffn_down_exps.weight"}};
  static constexpr Named names_of_shared[] = {{"w_gate", "ffn_gate_shexp.weight"},
                                              {"w_up", "ffn_up_shexp.weight"},
                                              {"w_down", "ffn_down_shexp.weight"}};
  const std::span<const Named> all = info.expert   ? std::span<const Named>(names_of_experts)
                                     : info.shared ? std::span<const Named>(names_of_shared)
                                                   : std::span<const Named>(names);
  const auto found = std::ranges::find(all, info.name, &Named::first);
  if (found == all.end())
    throw std::invalid_argument(
        fmt::format("{}: no architecture that is read here has such a tensor", info.name));
  return info.layer ? fmt::format("blk.{}.{}", *info.layer, found->second)
                    : std::string(found->second);
}

/// The shape of the tensor of a file that has this one, for a model with so many experts.
template <class Stored>
static std::vector<std::size_t> shape_in_file(const TensorInfo& info, const Stored&,
                                              std::size_t experts) {
  if (info.expert) return {experts, info.rows, info.cols};
  if (std::is_same_v<Stored, Weight>) return {info.rows, info.cols};
  return {info.rows};
}

std::vector<NamedShape> tensor_names(const Config& config) {
  std::vector<NamedShape> names;
  // One expert stands for all: a file may claim any number of them, and nothing is checked yet.
  ModelWeights none;
  none.blocks.resize(config.L);
  for (std::size_t l = 0; l < config.L; ++l)
    none.blocks[l].experts.resize(std::min<std::size_t>(settings_of(config, l).experts, 1));
  for_each_tensor(none, config, [&](const TensorInfo& info, const auto& tensor) {
    if (info.size() == 0) return;
    const std::size_t experts = info.layer ? settings_of(config, *info.layer).experts : 0;
    names.push_back({name_in_file(info), shape_in_file(info, tensor, experts), info.role});
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

  for (const NamedShape& tensor : names) file.tensor(tensor.name, tensor.shape);
}

static void read_tensor(const GgufFile& file, const TensorInfo& info, const MakeWeight&,
                        Shard shard, Tensor<1>& x) {
  const std::string name = name_in_file(info);
  const std::size_t ranks = split_of(info) == Split::rows ? shard.ranks : 1;
  const Tensor<1> whole = file.vector(name, ranks * info.rows);
  const std::size_t from = ranks > 1 ? shard.rank * info.rows : 0;
  x = xt::view(whole, xt::range(from, from + info.rows));
}
static void read_tensor(const GgufFile& file, const TensorInfo& info, const MakeWeight& make,
                        Shard shard, Weight& w) {
  std::vector<std::uint8_t> room;
  const GgufTensor& whole = file.tensor(name_in_file(info));
  const GgufTensor tensor = shard_of(whole, info, shard, room);
  TensorInfo of_rank = info;
  of_rank.rows = tensor.shape[0];
  w = make ? make(tensor, of_rank) : Weight(floats_of(tensor, of_rank.rows, info.cols));
  if (split_of(info) == Split::tokens) w = with_zeros(std::move(w), info, shard);
  file.forget(room.empty() ? tensor : whole);
}

ModelWeights read_weights(const GgufFile& file, const Config& config, const MakeWeight& make,
                          Shard shard) {
  expect_tensors(file, config);
  const Config own = shard_of(config, shard);
  Parameters parameters = count_parameters(own);
  parameters.embedding /= shard.ranks, parameters.head /= shard.ranks;
  if (!make)
    expect_memory(sizeof(float) * double(total(parameters)), file.name(),
                  "use a smaller model, or ./learn run 12, which keeps weights quantized");
  ModelWeights weights = room_for(own);
  for_each_tensor(weights, own, [&](const TensorInfo& info, auto& tensor) {
    if (info.size() > 0) read_tensor(file, info, make, shard, tensor);
  });
  file.expect_whole();
  return weights;
}

Model read_model(const GgufFile& file, const MakeWeight& make) {
  const Config config = read_config(file);
  return Model(config, read_weights(file, config, make));
}

}  // namespace t2t
