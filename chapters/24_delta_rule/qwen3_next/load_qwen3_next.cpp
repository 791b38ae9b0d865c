#include "24_delta_rule/qwen3_next/load_qwen3_next.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <set>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "10_pretrained/tokenizer/utf8.hpp"
#include "24_delta_rule/qwen3_next/qwen3_next_weights.hpp"
#include "linalg.hpp"
#include "memory.hpp"
#include "shapes.hpp"

namespace t2t {

// [groups]
std::vector<Tensor<2>> parts_of_groups(const Tensor<2>& x, std::size_t groups,
                                       const std::vector<std::size_t>& sizes) {
  const std::size_t rows = std::accumulate(sizes.begin(), sizes.end(), std::size_t(0));
  expect_shape("x", x, {groups * rows, x.shape(1)});
  std::vector<Tensor<2>> parts;
  std::size_t first = 0;  // of this part, in each group
  for (const std::size_t size : sizes) {
    Tensor<2>& part = parts.emplace_back(empty(groups * size, x.shape(1)));
    for (std::size_t g = 0; g < groups; ++g)
      for (std::size_t r = 0; r < size; ++r)
        std::ranges::copy(row(x, g * rows + first + r), row(part, g * size + r).begin());
    first += size;
  }
  return parts;
}

/// w_qkv and w_z, from two tensors or, in an old file, from one.
static std::pair<Tensor<2>, Tensor<2>> read_qkv_and_z(const GgufFile& file,
                                                      const std::string& block,
                                                      const DeltaLayerSettings& s) {
  const std::size_t G = s.key_heads(), values = s.H / G * s.Dv;  // rows of v in a group
  if (!file.has_tensor(block + "ssm_in.weight"))
    return {file.matrix(block + "attn_qkv.weight", s.channels(), s.C),
            file.matrix(block + "attn_gate.weight", s.H * s.Dv, s.C)};
  const Tensor<2> all = file.matrix(block + "ssm_in.weight", s.channels() + s.H * s.Dv, s.C);
  std::vector<Tensor<2>> parts = parts_of_groups(all, G, {s.D, s.D, values, values});
  Tensor<2> qkv = empty(s.channels(), s.C);
  auto to = qkv.begin();
  for (std::size_t i = 0; i < 3; ++i) to = std::copy(parts[i].begin(), parts[i].end(), to);
  return {std::move(qkv), std::move(parts[3])};
}

DeltaLayerWeights read_delta_layer(const GgufFile& file, const std::string& block,
                                   const DeltaLayerSettings& s) {
  DeltaLayerWeights w;
  std::tie(w.w_qkv, w.w_z) = read_qkv_and_z(file, block, s);
  const std::size_t G = s.key_heads(), heads = s.H / G;  // of v, in a group
  const Tensor<2> ba = file.matrix(block + "ssm_ba.weight", 2 * s.H, s.C);
  std::vector<Tensor<2>> gates = parts_of_groups(ba, G, {heads, heads});
  w.w_beta = std::move(gates[0]), w.w_gate = std::move(gates[1]);
  w.conv = file.matrix(block + "ssm_conv1d.weight", s.channels(), s.W);
  w.b = file.vector(block + "ssm_dt.bias", s.H);
  w.a = file.vector(block + "ssm_a", s.H);  // −e^a
  for (float& a : w.a) {
    if (!(a <= 0 && std::isfinite(a)))
      throw std::runtime_error(fmt::format(
          "{}: {}ssm_a: wanted finite numbers of at most 0, got {}", file.name(), block, a));
    a = std::log(-a);
  }
  w.gain = file.vector(block + "ssm_norm.weight", s.Dv);
  w.w_o = file.matrix(block + "ssm_out.weight", s.C, s.H * s.Dv);
  return w;
}
// [/groups]

/// The tensors of a delta layer, with their shapes.
static void expect_delta_tensors(const GgufFile& file, const std::string& block,
                                 const DeltaLayerSettings& s,
                                 std::set<std::string, std::less<>>& wanted) {
  const auto expect_tensor = [&](const char* name, const std::vector<std::size_t>& shape) {
    wanted.insert(block + name);
    file.tensor(block + name, shape);
  };
  if (file.has_tensor(block + "ssm_in.weight")) {
    expect_tensor("ssm_in.weight", {s.channels() + s.H * s.Dv, s.C});
  } else {
    expect_tensor("attn_qkv.weight", {s.channels(), s.C});
    expect_tensor("attn_gate.weight", {s.H * s.Dv, s.C});
  }
  expect_tensor("ssm_ba.weight", {2 * s.H, s.C});
  expect_tensor("ssm_conv1d.weight", {s.channels(), s.W});
  expect_tensor("ssm_dt.bias", {s.H});
  expect_tensor("ssm_a", {s.H});
  expect_tensor("ssm_norm.weight", {s.Dv});
  expect_tensor("ssm_out.weight", {s.C, s.H * s.Dv});
}

/// A model without weights, whose blocks have this many of their experts at most.
static Qwen3Next without_weights(const Qwen3NextConfig& config, std::size_t most_experts) {
  Qwen3Next model{};
  model.config = config;
  model.blocks.resize(config.L);
  for (Qwen3NextBlock& block : model.blocks) block.experts.resize(std::min(config.E, most_experts));
  return model;
}

void expect_qwen3_next_tensors(const GgufFile& file, const Qwen3NextConfig& config) {
  std::set<std::string, std::less<>> wanted;
  // One expert stands for all: a file may claim any number of them, and nothing is checked yet.
  const Qwen3Next none = without_weights(config, 1);
  for_each_qwen3_next_weight(none, [&](const LatentTensorInfo& info, const auto&) {
    wanted.insert(info.name);
    if (info.expert)
      file.tensor(info.name, {config.E, info.rows, info.cols});
    else if (info.role == Role::gain)
      file.tensor(info.name, {info.rows});
    else
      file.tensor(info.name, {info.rows, info.cols});
  });
  for (std::size_t l = 0; l < config.L; ++l)
    if (!config.attends(l))
      expect_delta_tensors(file, fmt::format("blk.{}.", l), config.delta, wanted);
  for (const GgufTensor& tensor : file.tensors())
    if (!wanted.contains(tensor.name))
      throw std::runtime_error(fmt::format("{}: {}: this model has no use for such a tensor",
                                           file.name(), printable(tensor.name)));
}

static void read_tensor(const GgufFile& file, const LatentTensorInfo& info, const MakeWeight&,
                        Tensor<1>& x) {
  x = file.vector(info.name, info.rows);
}
static void read_tensor(const GgufFile& file, const LatentTensorInfo& info, const MakeWeight& make,
                        Weight& w) {
  const GgufTensor& whole = file.tensor(info.name);
  const GgufTensor tensor =
      info.expert ? rows_of(whole, *info.expert * info.rows, info.rows) : whole;
  const bool as_floats = !make || info.role == Role::router;
  w = as_floats ? Weight(floats_of(tensor, info.rows, info.cols))
                : make(tensor, TensorInfo{info.name, info.rows, info.cols, info.role});
  file.forget(tensor);
}

/// Bytes that the weights take: floats, or about what the file has. Delta layers are floats.
static double bytes_wanted(const GgufFile& file, bool packed) {
  double sum = 0;
  for (const GgufTensor& tensor : file.tensors()) {
    double elements = 1;
    for (const std::size_t size : tensor.shape) elements *= double(size);
    const bool of_network = tensor.name.find("_exps.") != std::string_view::npos;
    sum += packed && of_network ? 1.5 * double(tensor.size) : sizeof(float) * elements;
  }
  return sum;
}

Qwen3Next read_qwen3_next(const GgufFile& file, const MakeWeight& make) {
  const Qwen3NextConfig config = read_qwen3_next_config(file);
  expect_qwen3_next_tensors(file, config);
  expect_memory(bytes_wanted(file, bool(make)), file.name(), "use a smaller model");
  Qwen3Next model = without_weights(config, config.E);
  for_each_qwen3_next_weight(model, [&](const LatentTensorInfo& info, auto& weight) {
    read_tensor(file, info, make, weight);
  });
  for (std::size_t l = 0; l < config.L; ++l)
    if (!config.attends(l))
      model.blocks[l].delta = read_delta_layer(file, fmt::format("blk.{}.", l), config.delta);
  file.expect_whole();
  expect_qwen3_next(model);
  return model;
}

}  // namespace t2t
