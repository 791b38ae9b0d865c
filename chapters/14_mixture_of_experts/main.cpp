// Shows a mixture of experts: which experts a router chooses, what a mixture holds and what a token
// uses of it, and how the load is balanced while the mixture learns.
#include <string>

#include "13_training/text/training_text.hpp"
#include "14_mixture_of_experts/show_balance.hpp"
#include "14_mixture_of_experts/show_choice.hpp"
#include "14_mixture_of_experts/show_counts.hpp"
#include "program/program.hpp"
#include "program/tasks.hpp"

using namespace t2t;

int main(int argc, char** argv) {
  std::string file;
  std::size_t steps = 150, seeds = 3;
  bool compare = false;
  Program program("14_mixture_of_experts",
                  "Many feed-forward networks, of which each token uses a few: which ones a router "
                  "chooses, what that saves, and how the load stays even in training.");
  program.input("file", file, "text to learn from; without it, the book's own pages");
  program.size("steps", steps, "steps to train each model", 10);
  program.yes("compare", compare,
              "train mixtures and dense models of as many parameters, and compare them");
  program.size("seeds", seeds, "seeds of --compare");
  program.has_answers(answers);
  const auto text = [&] { return file.empty() ? text_of_folder(T2T_PAGES) : text_of_file(file); };
  const auto tour = [&] {
    show_choice(program);
    show_counts();
    show_balance(text(), steps, program.seed());
    return 0;
  };
  const auto comparison = [&] { return show_comparison(text(), steps, seeds); };
  return program.run_tasks(argc, argv,
                           {{{"compare", {"file", "steps", "seeds"}, comparison},
                             {"", {"file", "steps", "seed", "save"}, tour}},
                            {}});
}
