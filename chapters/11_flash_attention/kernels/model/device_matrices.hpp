// A model's matrices on a device, by what a pass does with them: the slot in which DeviceModel
// finds its products. bf16_matrices is what this chapter puts there; chapter 12 has one for packed
// weights. Runs on the host; nvcc does not read this header.
#pragma once

#include <cstddef>
#include <functional>

#include "09_language_model/fast/model.hpp"
#include "11_flash_attention/kernels/model/model_kernels.hpp"

namespace t2t {

/// The functions launch kernels for T rows, of layer l where they name one. All pointers are device
/// memory. A recorded step repeats their launches, so what they read besides is to stay where it
/// is.
struct DeviceMatrices {
  std::function<void(const int* ids, int T, float* x)> embed;  // ids [T], x [T, C]
  std::function<void(std::size_t l, const NormedRows& x, int T, float* qkv)>
      project;  // qkv [T, H + 2·G, D] = norm(x)·wᵀ: queries, keys, values
  std::function<void(std::size_t l, const bf16* heads, int T, float* x)>
      add_heads;  // x += heads·w_oᵀ; heads [T, H, D], x [T, C]
  std::function<void(std::size_t l, const NormedRows& x, int T, bf16* hidden)>
      gate_and_up;  // hidden [T, F] = silu(norm(x)·w_gateᵀ) ⊙ (norm(x)·w_upᵀ)
  std::function<void(std::size_t l, const bf16* hidden, int T, float* x)>
      add_hidden;  // x += hidden·w_downᵀ
  std::function<void(const NormedRows& x, int T, float* logits)>
      score;              // logits [T, V] = norm(x)·headᵀ
  std::size_t bytes = 0;  // of device memory that the matrices take
};

/// Uploads a model's matrices. The result does not refer to the model.
using UploadMatrices = std::function<DeviceMatrices(const Model& model)>;

/// All matrices rounded to bf16, however they are stored on the host: 2 bytes for each weight.
/// Throws std::runtime_error when the device has no memory for them.
DeviceMatrices bf16_matrices(const Model& model);

}  // namespace t2t
