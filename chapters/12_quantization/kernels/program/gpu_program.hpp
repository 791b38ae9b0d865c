// What chapter 12's program does with --gpu. A program is linked with one of three definitions: for
// a GPU, for the CPU stand-in, or for neither.
#pragma once

#include "10_pretrained/chat/make_state.hpp"
#include "10_pretrained/model/load_model.hpp"

namespace t2t {

struct GpuProgram {
  MakeWeight make_weight = {};  // of the file's matrices
  MakeState make_state = {};  // whose states run on the device; empty in a program without kernels
};
GpuProgram gpu_program();

/// With the file's packed matrices on the device as they are. Each state says on stderr by which
/// rung its prompts attend, and how much memory the matrices take on the device.
GpuProgram with_stored_matrices();

}  // namespace t2t
