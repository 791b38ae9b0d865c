#include "16_server/on_gpu/runner_on_gpu.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <stdexcept>

#include "12_quantization/kernels/stored_matrices.hpp"
#include "15_serving/on_gpu/gpu_runner.hpp"
#include "cuda/device.hpp"

namespace t2t {

ModelRunner stored_runner(const Model& model, const EngineOptions& options) {
  fmt::print(stderr, "prompts attend over pages with rung 4's tiles, on any GPU\n");
  return gpu_runner(model, options, [](const Model& uploaded) {
    DeviceMatrices matrices = stored_matrices(uploaded);
    fmt::print(stderr, "{}\n", size_on_device(matrices, uploaded));
    return matrices;
  });
}

ModelRunner runner_on_gpu(const Model& model, const EngineOptions& options) {
  if (!has_gpu()) throw std::runtime_error("--gpu: wanted an NVIDIA GPU with its driver, got none");
  return stored_runner(model, options);
}

}  // namespace t2t
