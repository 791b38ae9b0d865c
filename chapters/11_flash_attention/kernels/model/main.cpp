// Chapter 10's program, whose flag --gpu runs the model by this chapter's kernels: on a GPU, or, in
// 10_pretrained_on_stand_in, on the CPU stand-in, which takes seconds for a token.
#include <utility>

#include "10_pretrained/program/run_pretrained.hpp"
#include "11_flash_attention/kernels/model/gpu_state.hpp"
#include "cuda/device.hpp"

using namespace t2t;

static ModelState state_on_device(const Model& model, std::size_t S, StateOptions options) {
  has_gpu();  // throws for a GPU that can't be used; without any, the first allocation does
  return gpu_state(model, S, std::move(options));
}

int main(int argc, char** argv) {
  MakeState on_device = gpu_states();
  on_device.make = state_on_device;
  return run_pretrained(argc, argv, solutions, on_device);
}
