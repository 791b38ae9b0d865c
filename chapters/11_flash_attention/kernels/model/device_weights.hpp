// A model's weights in device memory, rounded to bf16: 2 bytes for each, however they are stored on
// the host. Gains stay float32. Runs on the host; nvcc does not read this header.
#pragma once

#include <vector>

#include "09_language_model/fast/model.hpp"
#include "cuda/device.hpp"
#include "cuda/half_types.hpp"

namespace t2t {

/// In the order of use. The three matrices that read the first norm are one, so that one product
/// yields queries, keys and values side by side.
struct DeviceLayer {
  DeviceBuffer<float> attention_norm;     // [C]
  DeviceBuffer<bf16> w_qkv;               // [(H + 2·G)·D, C]
  DeviceBuffer<bf16> w_o;                 // [C, H·D]
  DeviceBuffer<float> feed_forward_norm;  // [C]
  DeviceBuffer<bf16> w_gate, w_up;        // [F, C]
  DeviceBuffer<bf16> w_down;              // [C, F]
};

struct DeviceWeights {
  DeviceBuffer<bf16> embedding;     // [V, C]
  std::vector<DeviceLayer> layers;  // L
  DeviceBuffer<float> final_norm;   // [C]
  DeviceBuffer<bf16> own_head;      // [V, C], empty when tied

  const bf16* head() const { return own_head.size() > 0 ? own_head.data() : embedding.data(); }
};

/// Uploads all weights; packed ones become floats on the way. Throws std::runtime_error when the
/// device has no memory for them.
DeviceWeights upload_weights(const Model& model);

}  // namespace t2t
