#include "11_flash_attention/kernels/model/device_weights.hpp"

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <span>
#include <utility>

#include "11_flash_attention/kernels/uploads.hpp"

namespace t2t {

/// The rows of several matrices of one width, one after the other.
static DeviceBuffer<bf16> rounded(std::initializer_list<const Weight*> matrices) {
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
  return {uploaded(w.attention_norm.gain),
          rounded({&w.w_q, &w.w_k, &w.w_v}),
          rounded({&w.w_o}),
          uploaded(w.feed_forward_norm.gain),
          rounded({&w.feed_forward.w_gate}),
          rounded({&w.feed_forward.w_up}),
          rounded({&w.feed_forward.w_down})};
}

DeviceWeights upload_weights(const Model& model) {
  const ModelWeights& w = model.weights();
  std::vector<DeviceLayer> layers;
  for (const BlockWeights& block : w.blocks) layers.push_back(upload_layer(block));
  return {rounded({&w.embedding}), std::move(layers), uploaded(w.final_norm.gain),
          rounded({&w.head})};
}

}  // namespace t2t
