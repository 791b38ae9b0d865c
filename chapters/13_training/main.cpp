// Trains: checks the gradients, learns one batch by heart, and lets a small model read the book.
// With --run it trains a model of any size in a folder, and goes on after an interruption.
#include <fmt/format.h>

#include <string>

#include "01_embedding/embedding.hpp"
#include "13_training/program/run_task.hpp"
#include "13_training/shows/show_gradients.hpp"
#include "13_training/shows/show_overfit.hpp"
#include "13_training/shows/show_run.hpp"
#include "program/print.hpp"

using namespace t2t;

static int tour(const Program& program, const RunFlags& flags, std::size_t steps) {
  const std::string text = text_of(flags.text);
  const std::vector<int> ids = byte_ids(text);
  show_gradients(ids, program.seed());
  show_overfit(ids, program.seed());
  const LossCurve curve = show_run(text, steps, program.seed());
  fmt::print("\n");
  print_paragraph(
      "Next: the page, docs/13_training.md. ./learn run 13 --run FOLDER trains a larger model for "
      "some minutes, which ./learn run 10 --model FOLDER/model.gguf --prompt \"The model\" loads.");
  Tensor<1> losses = empty(curve.size());
  for (std::size_t n = 0; n < curve.size(); ++n) losses(n) = float(curve[n].step.loss);
  program.save("losses", losses);
  return 0;
}

int main(int argc, char** argv) {
  RunFlags flags;
  std::size_t tour_steps = 90;
  Program program("13_training",
                  "Trains a language model with a backward pass written by hand. Without flags: "
                  "the gradients checked, one batch memorized, and a short run.");
  add_flags(program, flags);
  program.size("tour-steps", tour_steps, "steps of the short run that is shown without --run", 10);
  program.has_solutions(solutions);

  TaskTable table{run_tasks(program, flags), {{"file", "folder"}}};
  table.tasks.push_back({"", {"tour-steps", "file", "folder", "seed", "save"}, [&] {
                           return tour(program, flags, tour_steps);
                         }});
  table.check = [&] { expect_flags(program, flags); };
  return program.run_tasks(argc, argv, table);
}
