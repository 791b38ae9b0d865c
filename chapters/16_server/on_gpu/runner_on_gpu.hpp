// The runners of a server with --gpu.
#pragma once

#include "15_serving/engine/model_runner.hpp"

namespace t2t {

/// As gpu_runner, with chapter 12's stored_matrices: weights of stored_matrix stay packed on the
/// device. Says on stderr by which rung prompts attend, and how much memory the matrices take.
ModelRunner stored_runner(const Model& model, const EngineOptions& options);

/// The same on a GPU. Throws std::runtime_error ("--gpu: wanted an NVIDIA GPU with its driver, got
/// none") where there is none, and so on the stand-in.
ModelRunner runner_on_gpu(const Model& model, const EngineOptions& options);

}  // namespace t2t
