#include <fmt/format.h>

#include <cstdio>

#include "11_flash_attention/kernels/model/gpu_state.hpp"
#include "12_quantization/kernels/program/gpu_program.hpp"
#include "12_quantization/kernels/stored_matrices.hpp"
#include "12_quantization/kernels/stored_weight.hpp"

namespace t2t {

GpuProgram with_stored_matrices() {
  const UploadMatrices upload = [](const Model& model) {
    DeviceMatrices matrices = stored_matrices(model);
    fmt::print(stderr, "{}\n", size_on_device(matrices, model));
    return matrices;
  };
  return {stored_matrix, gpu_states(upload)};
}

}  // namespace t2t
