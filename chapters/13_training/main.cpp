// Trains: checks the gradients, learns one batch by heart, and lets a small model read the book.
// With --run it trains a model of any size in a folder, and goes on after an interruption; with
// --fine-tune a real model learns something more.
#include "13_training/experiments/show_experiment.hpp"
#include "13_training/fine_tuning/lora_task.hpp"
#include "13_training/program/show_gradients.hpp"
#include "13_training/program/show_overfit.hpp"
#include "13_training/program/show_run.hpp"
#include "13_training/text/training_text.hpp"
#include "13_training/trainer/run_task.hpp"

using namespace t2t;

static int tour(const Program& program, const RunFlags& flags, std::size_t steps) {
  const std::string text = text_of(flags);
  const std::vector<int> ids = byte_ids(text);
  show_gradients(ids, program.seed());
  show_overfit(ids, program.seed());
  show_run(text, steps, program.seed());
  fmt::print("\n");
  print_paragraph(
      "Next: the page, docs/13_training.md. ./learn run 13 --run FOLDER trains a larger model for "
      "some minutes, which ./learn run 10 --model FOLDER/model.gguf --prompt \"The model\" loads.");
  return 0;
}

/// Throws std::invalid_argument when two flags ask for two things.
static void expect_one_way(const Program& program) {
  std::string task;
  for (const char* flag : {"run", "resume", "fine-tune", "experiment"}) {
    if (!program.given(flag)) continue;
    if (!task.empty())
      throw std::invalid_argument(
          fmt::format("--{} and --{}: wanted one of them at a time", task, flag));
    task = flag;
  }
}

int main(int argc, char** argv) {
  RunFlags flags;
  LoraFlags lora;
  std::size_t tour_steps = 180, seeds = 3;
  std::string experiment;
  Program program(
      "13_training",
      "Trains a language model with a backward pass written by hand. Without flags: the "
      "gradients checked, one batch learned by heart, and a short run.");
  add_flags(program, flags);
  add_flags(program, lora);
  program.word("experiment", experiment,
               "train small models that differ in one choice, and compare them: a name, or all");
  program.size("seeds", seeds, "seeds of an experiment");
  program.size("tour-steps", tour_steps, "steps of the short run that is shown without --run", 10);
  return program.run_task(argc, argv, [&] {
    expect_one_way(program);
    expect_flags(program, flags);
    if (!experiment.empty()) return show_experiments(experiment, text_of(flags), seeds);
    if (!lora.fine_tune.empty()) return fine_tune(program, lora);
    if (!flags.run.empty()) return start_run(program, flags);
    if (!flags.resume.empty()) return resume_run(flags);
    return tour(program, flags, tour_steps);
  });
}
