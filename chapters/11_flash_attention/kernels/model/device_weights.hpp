// A model's weights in device memory: its matrices, rounded to bf16, and the gains of its norms, in
// float32. Runs on the host; nvcc does not read this header.
#pragma once

#include <initializer_list>
#include <vector>

#include "09_language_model/fast/model.hpp"
#include "cuda/device.hpp"
#include "cuda/half_types.hpp"

namespace t2t {

/// In the order of use. The three matrices that read the first norm are one, so that one product
/// yields queries, keys and values side by side.
struct DeviceLayer {
  DeviceBuffer<bf16> w_qkv;         // [(H + 2·G)·D, C]
  DeviceBuffer<bf16> w_o;           // [C, H·D]
  DeviceBuffer<bf16> w_gate, w_up;  // [F, C]
  DeviceBuffer<bf16> w_down;        // [C, F]
};

struct DeviceWeights {
  DeviceBuffer<bf16> embedding;     // [V, C]
  std::vector<DeviceLayer> layers;  // L
  DeviceBuffer<bf16> own_head;      // [V, C], empty when tied

  const bf16* head() const { return own_head.size() > 0 ? own_head.data() : embedding.data(); }
  std::size_t bytes() const;
};

/// The gains of a layer's two norms.
struct DeviceGains {
  DeviceBuffer<float> attention, feed_forward;  // [C]
};

/// Upload all matrices, or all layers' gains; packed matrices become floats on the way. Throw
/// std::runtime_error when the device has no memory for them.
DeviceWeights upload_weights(const Model& model);
std::vector<DeviceGains> upload_gains(const Model& model);

/// The rows of several matrices of one width, one after the other, rounded to bf16.
DeviceBuffer<bf16> uploaded_in_bf16(std::initializer_list<const Weight*> matrices);

}  // namespace t2t
