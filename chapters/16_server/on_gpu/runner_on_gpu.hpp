// The runner of a server with --gpu.
#pragma once

#include "15_serving/engine/model_runner.hpp"

namespace t2t {

/// As gpu_runner, and says on stderr by which rung prompts attend. Throws std::runtime_error
/// ("--gpu: wanted an NVIDIA GPU with its driver, got none") where there is no GPU, and so on the
/// stand-in.
ModelRunner runner_on_gpu(const Model& model, const EngineOptions& options);

}  // namespace t2t
