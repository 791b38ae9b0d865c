#include <stdexcept>
#include <utility>

#include "12_quantization/kernels/program/gpu_program.hpp"
#include "cuda/device.hpp"

namespace t2t {

GpuProgram gpu_program() {
  GpuProgram program = with_stored_matrices();
  program.make_state.make = [make = program.make_state.make](const Model& model, std::size_t S,
                                                             StateOptions options) {
    if (!has_gpu())
      throw std::runtime_error("--gpu: wanted an NVIDIA GPU with its driver, got none");
    return make(model, S, std::move(options));
  };
  return program;
}

}  // namespace t2t
