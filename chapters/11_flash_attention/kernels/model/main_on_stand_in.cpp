// The same program with --gpu on the CPU stand-in, which takes seconds for a token of the real
// model: for comparing its numbers with chapter 10's, on a machine without a GPU.
#include "10_pretrained/program/run_pretrained.hpp"
#include "11_flash_attention/kernels/model/gpu_state.hpp"

int main(int argc, char** argv) {
  return t2t::run_pretrained(argc, argv, t2t::solutions, t2t::gpu_states());
}
