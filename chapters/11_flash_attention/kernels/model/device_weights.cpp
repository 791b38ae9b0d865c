#include "11_flash_attention/kernels/model/device_weights.hpp"

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <memory>
#include <span>
#include <utility>

#include "11_flash_attention/kernels/model/device_matrices.hpp"
#include "11_flash_attention/kernels/uploads.hpp"

namespace t2t {

DeviceBuffer<bf16> uploaded_in_bf16(std::initializer_list<const Weight*> matrices) {
  std::vector<bf16> numbers;
  Tensor<2> room;
  for (const Weight* matrix : matrices) {
    const Tensor<2>& floats = floats_of(*matrix, room);
    const std::size_t before = numbers.size();
    numbers.resize(before + floats.size());
    std::transform(floats.data(), floats.data() + floats.size(), numbers.data() + before,
                   [](float number) { return __float2bfloat16(number); });
  }
  return DeviceBuffer<bf16>(std::span<const bf16>(numbers));
}

static DeviceLayer upload_layer(const BlockWeights& w) {
  return {uploaded_in_bf16({&w.w_q, &w.w_k, &w.w_v}), uploaded_in_bf16({&w.w_o}),
          uploaded_in_bf16({&w.feed_forward.w_gate}), uploaded_in_bf16({&w.feed_forward.w_up}),
          uploaded_in_bf16({&w.feed_forward.w_down})};
}

DeviceWeights upload_weights(const Model& model) {
  const ModelWeights& w = model.weights();
  std::vector<DeviceLayer> layers;
  for (const BlockWeights& block : w.blocks) layers.push_back(upload_layer(block));
  return {uploaded_in_bf16({&w.embedding}), std::move(layers), uploaded_in_bf16({&w.head})};
}

std::vector<DeviceGains> upload_gains(const Model& model) {
  std::vector<DeviceGains> gains;
  for (const BlockWeights& w : model.weights().blocks)
    gains.push_back({uploaded(w.attention_norm.gain), uploaded(w.feed_forward_norm.gain)});
  return gains;
}

std::size_t DeviceWeights::bytes() const {
  std::size_t weights = embedding.size() + own_head.size();
  for (const DeviceLayer& w : layers)
    weights += w.w_qkv.size() + w.w_o.size() + w.w_gate.size() + w.w_up.size() + w.w_down.size();
  return weights * sizeof(bf16);
}

DeviceMatrices bf16_matrices(const Model& model) {
  const auto all = std::make_shared<const DeviceWeights>(upload_weights(model));
  const BlockSettings& s = model.config().block;
  const int C = int(s.C), F = int(s.F), V = int(model.config().V);
  const int of_heads = int(s.H * s.D), of_qkv = int((s.H + 2 * s.G) * s.D);
  return {.embed = [=](const int* ids, int T,
                       float* x) { launch_embed(all->embedding.data(), ids, T, C, x); },
          .project =
              [=](std::size_t l, const NormedRows& x, int T, float* qkv) {
                launch_store_product(x, all->layers[l].w_qkv.data(), T, C, of_qkv, qkv);
              },
          .add_heads =
              [=](std::size_t l, const bf16* heads, int T, float* x) {
                launch_add_product(heads, all->layers[l].w_o.data(), T, of_heads, C, x);
              },
          .gate_and_up =
              [=](std::size_t l, const NormedRows& x, int T, bf16* hidden) {
                const DeviceLayer& w = all->layers[l];
                launch_swiglu_product(x, w.w_gate.data(), w.w_up.data(), T, C, F, hidden);
              },
          .add_hidden =
              [=](std::size_t l, const bf16* hidden, int T, float* x) {
                launch_add_product(hidden, all->layers[l].w_down.data(), T, F, C, x);
              },
          .score = [=](const NormedRows& x, int T,
                       float* logits) { launch_store_product(x, all->head(), T, C, V, logits); },
          .bytes = all->bytes()};
}

}  // namespace t2t
