// A model's matrices on a device as its file stores them: the slot of chapter 11's device model
// (device_matrices.hpp), for weights that stored_weight made. Runs on the host; nvcc does not read
// this header.
#pragma once

#include <string>

#include "11_flash_attention/kernels/model/device_matrices.hpp"

namespace t2t {

/// Uploads the bytes of stored weights as they are, and other weights rounded to bf16. What one
/// kernel multiplies together (queries, keys and values; gate and up) must have one form; otherwise
/// all of it becomes bf16. Throws std::runtime_error when the device has no memory for them.
DeviceMatrices stored_matrices(const Model& model);

/// "76 MB of weights on the GPU, of 269 MB in bf16"
std::string size_on_device(const DeviceMatrices& matrices, const Model& model);

}  // namespace t2t
