// Quantizes weights and computes with them: first a block, then a matrix, then the model of chapter
// 10. It also writes quantized files.
#include <fmt/format.h>

#include <stdexcept>

#include "10_pretrained/program/tasks.hpp"
#include "12_quantization/cache/quantized_cache.hpp"
#include "12_quantization/cache/quantized_state.hpp"
#include "12_quantization/kernels/program/gpu_program.hpp"
#include "12_quantization/program/float_flag.hpp"
#include "12_quantization/program/quantize_task.hpp"
#include "12_quantization/shows/show_tour.hpp"

using namespace t2t;

/// How the tasks store keys and values. Throws std::invalid_argument for other numbers of bits.
static MakeState state_of(std::size_t bits) {
  if (bits == 32) return {};
  if (bits != 8 && bits != 4)
    throw std::invalid_argument(fmt::format("--cache-bits: wanted 32, 8 or 4, got {}", bits));
  const auto make = [bits](const Model& model, std::size_t S, StateOptions options) {
    return quantized_state(model.config(), S, bits, std::move(options));
  };
  return {make, quantized_number_bytes(bits)};
}

/// Runs the model on the GPU, with the file's packed weights, or with bf16 ones for --float.
static void use_gpu(bool floats, Flags& flags) {
  const GpuProgram on_gpu = gpu_program();
  if (!on_gpu.make_state.make)
    throw std::runtime_error(
        "--gpu: this program was built without kernels; ./learn run 12 --gpu builds one with them");
  if (!floats) flags.make_weight = on_gpu.make_weight;
  flags.make_state = on_gpu.make_state;
}

int main(int argc, char** argv) {
  Flags flags;
  QuantizeFlags quantize_flags;
  bool floats = false, gpu = false;
  std::size_t cache_bits = 32;
  Program program("12_quantization",
                  "Keeps a model's weights in 4 or 8 bits and computes with them. It does chapter "
                  "10's tasks with such weights. Without flags: a short tour.");
  add_flags(program, flags);
  add_flags(program, quantize_flags);
  program.yes("float", floats, "convert the weights to floats, as chapter 10 does, for comparison");
  program.size("cache-bits", cache_bits, "bits per element of the cache: 32, 8 or 4");
  program.yes("gpu", gpu, "run the whole model on the GPU, with the weights as in the file");
  program.has_solutions(solutions);

  const Task tour = {
      "", {"model", "seed", "float", "cache-bits"}, [&] { return show_tour(flags); }};
  TaskTable table = pretrained_tasks(program, flags, tour, {"float", "cache-bits", "gpu"});
  table.tasks.insert(table.tasks.begin(), quantize_task(quantize_flags, flags.window));
  table.apart.insert(table.apart.end(),
                     {{"cache-bits", "gpu"}, {"trace", "gpu"}, {"export", "gpu"}});
  table.check = [&, check = table.check] {
    check();
    pack_unless(floats, program, flags);
    flags.make_state = state_of(cache_bits);
    if (gpu) use_gpu(floats, flags);
  };
  return program.run_tasks(argc, argv, table);
}
