// On the CPU stand-in, which takes seconds for a token of the real model: for comparing its numbers
// with the CPU's, on a machine without a GPU.
#include "12_quantization/kernels/program/gpu_program.hpp"

t2t::GpuProgram t2t::gpu_program() { return with_stored_matrices(); }
