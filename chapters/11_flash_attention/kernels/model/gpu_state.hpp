// A ModelState whose passes run on the device: what chapter 10's program makes with --gpu.
#pragma once

#include "10_pretrained/chat/make_state.hpp"
#include "11_flash_attention/kernels/model/device_matrices.hpp"

namespace t2t {

/// Uploads the model's weights, for this state alone: later changes of the model are not seen. The
/// model may be moved; a pass of another one throws std::invalid_argument. Sequences have up to S
/// tokens. Throws as ModelState and DeviceModel do.
ModelState gpu_state(const Model& model, std::size_t S, StateOptions options = {},
                     const UploadMatrices& upload = bf16_matrices);

/// The same for a program's tasks. Each state says on stderr by which rung its prompts attend.
MakeState gpu_states(const UploadMatrices& upload = bf16_matrices);

}  // namespace t2t
