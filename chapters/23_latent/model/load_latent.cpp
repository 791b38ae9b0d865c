#include "23_latent/model/load_latent.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>

#include "10_pretrained/tokenizer/utf8.hpp"
#include "23_latent/model/weight_list.hpp"
#include "memory.hpp"

namespace t2t {

static bool is_kv_b(const LatentTensorInfo& info) {
  return info.name.ends_with("attn_kv_b.weight");
}
/// "blk.3.attn_k_b.weight" of "blk.3.attn_kv_b.weight".
static std::string part_of_kv_b(std::string name, std::string_view part) {
  return name.replace(name.find("attn_kv_b"), 9, part);
}

/// A model without weights, whose blocks have this many of their experts at most.
static LatentModel without_weights(const LatentConfig& config, std::size_t most_experts) {
  LatentModel model{};
  model.config = config;
  model.blocks.resize(config.L);
  for (std::size_t l = config.dense; l < config.L; ++l)
    model.blocks[l].experts.resize(std::min(config.E, most_experts));
  return model;
}

/// The tensors that hold w_kvb, with their shapes.
static void expect_kv_b(const GgufFile& file, const LatentTensorInfo& info,
                        const LatentSettings& s) {
  const std::string k_b = part_of_kv_b(info.name, "attn_k_b"),
                    v_b = part_of_kv_b(info.name, "attn_v_b");
  if (file.has_tensor(info.name) && !file.has_tensor(k_b)) {
    file.tensor(info.name, {info.rows, info.cols});
    return;
  }
  file.tensor(k_b, {s.H, s.K, s.N});
  file.tensor(v_b, {s.H, s.Dv, s.K});
}

void expect_latent_tensors(const GgufFile& file, const LatentConfig& config) {
  std::set<std::string, std::less<>> wanted;
  // One expert stands for all: a file may claim any number of them, and nothing is checked yet.
  const LatentModel none = without_weights(config, 1);
  for_each_latent_weight(none, [&](const LatentTensorInfo& info, const auto&) {
    wanted.insert(info.name);
    if (is_kv_b(info)) {
      wanted.insert(part_of_kv_b(info.name, "attn_k_b"));
      wanted.insert(part_of_kv_b(info.name, "attn_v_b"));
      expect_kv_b(file, info, config.attention);
    } else if (info.expert) {
      file.tensor(info.name, {config.E, info.rows, info.cols});
    } else if (info.role != Role::bias || file.has_tensor(info.name)) {  // only V3 has biases
      const bool vector = info.cols == 1;
      file.tensor(info.name, vector ? std::vector{info.rows} : std::vector{info.rows, info.cols});
    }
  });
  for (const GgufTensor& tensor : file.tensors())
    if (!wanted.contains(tensor.name))
      throw std::runtime_error(fmt::format("{}: {}: this model has no use for such a tensor",
                                           file.name(), printable(tensor.name)));
}

// [kv_b]
Tensor<2> read_kv_b(const GgufFile& file, const std::string& block, const LatentSettings& s) {
  const auto& [C, H, N, R, Dv, K, Q, m, pairing, eps] = s;
  const std::string k_b = block + "attn_k_b.weight", v_b = block + "attn_v_b.weight";
  if (!file.has_tensor(k_b)) return file.matrix(block + "attn_kv_b.weight", H * (N + Dv), K);
  const Tensor<2> u = floats_of(file.tensor(k_b, {H, K, N}), H * K, N);    // each head's Uᵀ
  const Tensor<2> y = floats_of(file.tensor(v_b, {H, Dv, K}), H * Dv, K);  // each head's Y
  Tensor<2> w_kvb = empty(H * (N + Dv), K);
  for (std::size_t h = 0; h < H; ++h) {
    const std::size_t first = h * (N + Dv);  // head h's rows: those of U, then those of Y
    for (std::size_t n = 0; n < N; ++n)
      for (std::size_t k = 0; k < K; ++k) w_kvb(first + n, k) = u(h * K + k, n);
    for (std::size_t d = 0; d < Dv; ++d)
      std::ranges::copy(row(y, h * Dv + d), row(w_kvb, first + N + d).begin());
  }
  return w_kvb;
}
// [/kv_b]

static void read_latent_tensor(const GgufFile& file, const LatentTensorInfo& info,
                               const LatentSettings&, const MakeWeight&, Tensor<1>& x) {
  if (info.role != Role::bias || file.has_tensor(info.name)) x = file.vector(info.name, info.rows);
}
static void read_latent_tensor(const GgufFile& file, const LatentTensorInfo& info,
                               const LatentSettings& settings, const MakeWeight&, Tensor<2>& w) {
  const std::string block = info.name.substr(0, info.name.find("attn"));  // "blk.3."
  w = is_kv_b(info) ? read_kv_b(file, block, settings)
                    : file.matrix(info.name, info.rows, info.cols);
}
static void read_latent_tensor(const GgufFile& file, const LatentTensorInfo& info,
                               const LatentSettings&, const MakeWeight& make, Weight& w) {
  const GgufTensor& whole = file.tensor(info.name);
  const GgufTensor tensor =
      info.expert ? rows_of(whole, *info.expert * info.rows, info.rows) : whole;
  w = make ? make(tensor, TensorInfo{info.name, info.rows, info.cols, info.role})
           : Weight(floats_of(tensor, info.rows, info.cols));
  file.forget(tensor);
}

LatentModel read_latent_model(const GgufFile& file, const MakeWeight& make) {
  const LatentConfig config = read_latent_config(file);
  expect_latent_tensors(file, config);
  double stored = 0, elements = 0;
  for (const GgufTensor& tensor : file.tensors()) {
    stored += double(tensor.size);
    double size = 1;
    for (const std::size_t n : tensor.shape) size *= double(n);
    elements += size;
  }
  expect_memory(make ? 1.5 * stored : sizeof(float) * elements, file.name(), "use a smaller model");
  LatentModel model = without_weights(config, config.E);
  for_each_latent_weight(model, [&](const LatentTensorInfo& info, auto& weight) {
    read_latent_tensor(file, info, config.attention, make, weight);
  });
  file.expect_whole();
  expect_latent_model(model);
  return model;
}

}  // namespace t2t
