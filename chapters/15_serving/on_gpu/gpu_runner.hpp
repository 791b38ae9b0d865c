// The engine's interface to a model on a device: chapter 11's whole pass, with keys and values in
// pages.
#pragma once

#include "11_flash_attention/kernels/model/device_matrices.hpp"
#include "15_serving/engine/model_runner.hpp"

namespace t2t {

/// A runner whose keys and values are bf16 in the device's memory, and whose matrices are there as
/// `upload` stores them. The model must outlive it; its weights are copied once, and later changes
/// are not seen. Throws std::invalid_argument as ModelState and DeviceModel do, and unless
/// options.bits is 32, which stands for bf16 here; std::runtime_error when there is too little
/// memory.
///
/// Unlike with model_runner, a sequence's bits depend on the other sequences. Products of up to 4
/// rows are added up in another order than those of more rows, and attention of one token in
/// another order than attention of several.
ModelRunner gpu_runner(const Model& model, const EngineOptions& options,
                       const UploadMatrices& upload = bf16_matrices);

}  // namespace t2t
