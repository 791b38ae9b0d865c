#include "16_server/program/run_server.hpp"

#include <stdexcept>

#include "16_server/shows/show_load.hpp"
#include "16_server/shows/show_structured.hpp"

namespace t2t {

int run_server(int argc, char** argv, std::vector<Solution> (*solutions)(),
               const ServeOnGpu& on_gpu) {
  Program program("16_server",
                  "A server that answers over HTTP, and answers that keep to JSON or to a schema.");
  ServeFlags serve_flags;
  LoadFlags load_flags;
  bool gpu = false;
  add_flags(program, serve_flags);
  program.yes(
      "gpu", gpu,
      "run the whole model on the GPU, with the KV cache in bf16 and the weights as in the file");
  add_flags(program, load_flags);
  program.has_solutions(solutions);
  const Task tour = {"", {"seed", "save"}, [] {
                       show_structured();
                       return 0;
                     }};
  TaskTable table = {{serve_task(serve_flags, {"gpu"}), load_task(program, load_flags), tour}};
  table.apart = {{"cache-bits", "gpu"}};
  table.check = [&] {
    if (!gpu) return;
    if (!on_gpu.make_runner)
      throw std::runtime_error(
          "--gpu: this program was built without kernels; ./learn serve --gpu builds one with "
          "them");
    serve_flags.on_gpu = on_gpu;
  };
  return program.run_tasks(argc, argv, table);
}

}  // namespace t2t
