// The same program with --gpu on the CPU stand-in, which takes seconds for a token of the real
// model: for comparing its answers with the CPU's, on a machine without a GPU.
#include "15_serving/on_gpu/gpu_runner.hpp"
#include "16_server/program/run_server.hpp"

int main(int argc, char** argv) {
  return t2t::run_server(argc, argv, t2t::solutions, [](const auto& model, const auto& options) {
    return t2t::gpu_runner(model, options);
  });
}
