// Shows a mixture of experts: which experts a router chooses, what a mixture holds and how much of
// it a token uses, and how the load is balanced while the mixture learns. It also does chapter 10's
// tasks with model files that hold experts.
#include <fmt/format.h>

#include <stdexcept>
#include <string>

#include "10_pretrained/program/open_session.hpp"
#include "10_pretrained/program/tasks.hpp"
#include "12_quantization/program/float_flag.hpp"
#include "13_training/program/chosen_text.hpp"
#include "14_mixture_of_experts/model/mixture_network.hpp"
#include "14_mixture_of_experts/model/upcycle.hpp"
#include "14_mixture_of_experts/shows/figure.hpp"
#include "14_mixture_of_experts/shows/show_balance.hpp"
#include "14_mixture_of_experts/shows/show_choice.hpp"
#include "14_mixture_of_experts/shows/show_counts.hpp"
#include "14_mixture_of_experts/shows/show_rivals.hpp"
#include "files/files.hpp"
#include "memory.hpp"
#include "program/print.hpp"
#include "program/progress.hpp"
#include "utf8_start.hpp"

using namespace t2t;

/// Memory for sequences of a model with experts.
static MakeState state_with_experts() {
  return {[](const Model& model, std::size_t S, StateOptions options) {
    if (model.config().block.experts > 0) options.network = experts_network();
    return ModelState(model.config(), S, std::move(options));
  }};
}

/// What the program trains, and on which text.
struct TrainingFlags {
  std::string file;
  std::size_t steps = 60, seeds = 3;
  bool rivals = false;

  std::string text() const { return text_of({.file = file, .folder = {}}); }
};
static void add_flags(Program& program, TrainingFlags& flags) {
  program.input("file", flags.file, "text to learn from; without it, the book's own pages");
  program.size("steps", flags.steps, "steps to train each model", 10);
  program.yes("rivals", flags.rivals,
              "train mixtures and dense models with as many parameters, and compare them");
  program.size("seeds", flags.seeds, "seeds of --rivals");
}

/// Writes the model as a mixture whose experts are copies of its network.
static int write_mixture(const Flags& flags, const std::string& path, const Upcycling& upcycling) {
  if (upcycling.chosen < 1 || upcycling.chosen > upcycling.experts)
    throw std::invalid_argument(fmt::format("--chosen: wanted 1 to --experts {}, got {}",
                                            upcycling.experts, upcycling.chosen));
  expect_writable(path);
  const std::uint64_t size =
      upcycle(open_model(flags.model), upcycling, path, [](std::size_t done, std::size_t all) {
        show_progress(fmt::format("  {} of {} tensors written ", done, all));
      });
  show_progress("");
  fmt::print("{}: {}, {} experts in each block, of which each token uses {}\n",
             printable_lines(path), bytes_text(double(size)), upcycling.experts, upcycling.chosen);
  print_paragraph(
      "The experts are copies of one network, so the mixture answers as the model does until "
      "training "
      "makes them differ.");
  return 0;
}

int main(int argc, char** argv) {
  Flags flags;
  TrainingFlags training;
  Upcycling upcycling;
  std::string upcycled, svg;
  bool floats = false;
  Program program("14_mixture_of_experts",
                  "Many feed-forward networks, of which each token uses a few: which ones a router "
                  "chooses, what that saves, and how the load stays even in training. It does "
                  "chapter 10's tasks with files of such models. Without flags: a short tour.");
  add_flags(program, flags);
  add_flags(program, training);
  program.output("upcycle", upcycled,
                 "write the model of --model as a mixture of copies of its networks to this file");
  program.size("experts", upcycling.experts, "with --upcycle: experts in each block");
  program.size("chosen", upcycling.chosen, "with --upcycle: how many of them each token uses");
  program.yes("float", floats, "expand a file's weights into floats, as chapter 10 does");
  program.output("svg", svg, "write the chapter's figure to this file and stop");
  program.has_solutions(solutions);

  const Task tour = {"", {"file", "steps", "seed", "save"}, [&] {
                       show_choice(program);
                       show_counts();
                       show_balance(training.text(), training.steps, program.seed());
                       return 0;
                     }};
  const Task rivals = {"rivals", {"file", "steps", "seeds"}, [&] {
                         return show_rivals(training.text(), training.steps, training.seeds);
                       }};
  TaskTable table = pretrained_tasks(program, flags, tour, {"float"});
  table.tasks.insert(table.tasks.begin(), rivals);
  table.tasks.insert(table.tasks.begin(),
                     {"svg", {"seed"}, [&] {
                        write_file(svg, figure_of_loads(route_letters(program.seed())));
                        return 0;
                      }});
  table.tasks.insert(table.tasks.begin(), {"upcycle", {"model", "experts", "chosen", "seed"}, [&] {
                                             upcycling.seed = program.seed();
                                             return write_mixture(flags, upcycled, upcycling);
                                           }});
  table.check = [&, check = table.check] {
    check();
    pack_unless(floats, program, flags);
    flags.make_state = state_with_experts();
    flags.runs_experts = true;
  };
  return program.run_tasks(argc, argv, table);
}
