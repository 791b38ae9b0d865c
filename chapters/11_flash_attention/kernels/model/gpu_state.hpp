// A ModelState whose passes run on the device: what chapter 10's program makes with --gpu.
#pragma once

#include "10_pretrained/chat/make_state.hpp"

namespace t2t {

/// Uploads the model's weights, for this state alone; the model may be changed or moved afterwards,
/// but only passes of the model with these weights are allowed. Throws as ModelState and
/// DeviceModel do.
ModelState gpu_state(const Model& model, std::size_t S, StateOptions options = {});

/// The same for a program's tasks.
MakeState gpu_states();

}  // namespace t2t
