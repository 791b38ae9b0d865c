// The same program with --gpu on the CPU stand-in, which takes seconds for a token of the real
// model: for comparing its answers with the CPU's, on a machine without a GPU.
#include "12_quantization/kernels/stored_weight.hpp"
#include "16_server/on_gpu/runner_on_gpu.hpp"
#include "16_server/program/run_server.hpp"

int main(int argc, char** argv) {
  return t2t::run_server(argc, argv, t2t::solutions, {t2t::stored_matrix, t2t::stored_runner});
}
