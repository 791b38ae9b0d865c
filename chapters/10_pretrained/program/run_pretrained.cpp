#include "10_pretrained/program/run_pretrained.hpp"

#include <stdexcept>

#include "10_pretrained/program/show_tour.hpp"
#include "10_pretrained/program/tasks.hpp"

namespace t2t {

int run_pretrained(int argc, char** argv, std::vector<Solution> (*solutions)(),
                   const MakeState& on_gpu) {
  Flags flags;
  bool gpu = false;
  Program program("10_pretrained",
                  "Loads a real language model into the block of chapter 08, chats with it and "
                  "checks it. Without flags: a short tour.");
  add_flags(program, flags);
  program.yes("gpu", gpu, "run the whole model on the GPU, with weights and cache in bf16");
  program.has_solutions(solutions);

  const Task tour = {"", {"model", "seed"}, [&] { return show_tour(flags, program.seed()); }};
  TaskTable table = pretrained_tasks(program, flags, tour, {"gpu"});
  table.apart.insert(table.apart.end(), {{"trace", "gpu"}, {"export", "gpu"}});
  table.check = [&, check = table.check] {
    check();
    if (!gpu) return;
    if (!on_gpu.make)
      throw std::runtime_error(
          "--gpu: this program was built without kernels; ./learn run 10 --gpu builds one with "
          "them");
    flags.make_state = on_gpu;
  };
  return program.run_tasks(argc, argv, table);
}

}  // namespace t2t
