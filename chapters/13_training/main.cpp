// Trains: checks the gradients, learns one batch by heart, and lets a small model read the book.
// With --run it trains a model of any size in a folder, and goes on after an interruption; with
// --fine-tune a real model learns something more.
#include <fmt/format.h>

#include <stdexcept>
#include <string>

#include "01_embedding/embedding.hpp"
#include "13_training/encoders/show_reversal.hpp"
#include "13_training/encoders/show_which_chapter.hpp"
#include "13_training/experiments/show_experiment.hpp"
#include "13_training/fine_tuning/lora_task.hpp"
#include "13_training/program/run_task.hpp"
#include "13_training/program/show_gradients.hpp"
#include "13_training/program/show_overfit.hpp"
#include "13_training/program/show_run.hpp"
#include "program/print.hpp"

using namespace t2t;

static int tour(const Program& program, const RunFlags& flags, std::size_t steps) {
  const std::string text = text_of(flags);
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

static int show_encoder(const std::string& name, const RunFlags& flags, std::size_t seeds) {
  if (name == "which-chapter") return show_which_chapter(seeds);
  if (name == "reversal") return show_reversal(text_of(flags), seeds);
  throw std::invalid_argument("--encoder: wanted which-chapter or reversal, got " + name);
}

int main(int argc, char** argv) {
  RunFlags flags;
  LoraFlags lora;
  std::size_t tour_steps = 90, seeds = 3;
  std::string experiment, encoder;
  Program program(
      "13_training",
      "Trains a language model with a backward pass written by hand. Without flags: the "
      "gradients checked, one batch learned by heart, and a short run.");
  add_flags(program, flags);
  add_flags(program, lora);
  program.word("experiment", experiment,
               "train small models that differ in one choice, and compare them: a name, or all");
  program.word(
      "encoder", encoder,
      "train a model that reads whole texts: which-chapter (a classifier), or reversal (an "
      "encoder-decoder)");
  program.size("seeds", seeds, "seeds of an experiment or an encoder");
  program.size("tour-steps", tour_steps, "steps of the short run that is shown without --run", 10);
  program.has_answers(answers);

  TaskTable table{run_tasks(program, flags), {{"file", "folder"}}};
  table.tasks.push_back(fine_tune_task(program, lora));
  table.tasks.push_back({"experiment", {"seeds", "file", "folder"}, [&] {
                           return show_experiments(experiment, text_of(flags), seeds);
                         }});
  table.tasks.push_back({"encoder", {"seeds", "file", "folder"}, [&] {
                           return show_encoder(encoder, flags, seeds);
                         }});
  table.tasks.push_back({"", {"tour-steps", "file", "folder", "seed", "save"}, [&] {
                           return tour(program, flags, tour_steps);
                         }});
  table.check = [&] { expect_flags(program, flags); };
  return program.run_tasks(argc, argv, table);
}
