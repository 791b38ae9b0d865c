// Chapter 10's program, whose flag --gpu runs the model on a GPU by this chapter's kernels.
#include <stdexcept>
#include <utility>

#include "10_pretrained/program/run_pretrained.hpp"
#include "11_flash_attention/kernels/model/gpu_state.hpp"
#include "cuda/device.hpp"

using namespace t2t;

int main(int argc, char** argv) {
  MakeState on_gpu = gpu_states();
  on_gpu.make = [make = on_gpu.make](const Model& model, std::size_t S, StateOptions options) {
    if (!has_gpu())
      throw std::runtime_error("--gpu: wanted an NVIDIA GPU with its driver, got none");
    return make(model, S, std::move(options));
  };
  return run_pretrained(argc, argv, solutions, on_gpu);
}
