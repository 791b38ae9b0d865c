// Experiments: small models that differ in one choice, trained alike. Without flags, a list of them
// and a short one.
#include <stdexcept>
#include <string>

#include "01_embedding/embedding.hpp"
#include "13_training/program/chosen_text.hpp"
#include "13_training/text/passages.hpp"
#include "18_experiments/shows/figure_of_muon.hpp"
#include "18_experiments/shows/show_experiment.hpp"
#include "18_experiments/shows/show_muon.hpp"
#include "18_experiments/shows/show_reversal.hpp"
#include "18_experiments/shows/show_which_chapter.hpp"
#include "files/files.hpp"
#include "program/program.hpp"
#include "program/solutions.hpp"

using namespace t2t;

static int show_encoder(const std::string& name, const TextFlags& text, std::size_t seeds) {
  if (name == "which-chapter") return show_which_chapter(seeds);
  if (name == "reversal") return show_reversal(text_of(text), seeds);
  throw std::invalid_argument("--encoder: wanted which-chapter or reversal, got " + name);
}

int main(int argc, char** argv) {
  TextFlags text;
  std::size_t seeds = 3;
  std::string experiment, encoder, muon, svg;
  Program program("18_experiments",
                  "Trains small models that differ in one choice, and compares them. Without "
                  "flags: the experiments' names and questions, and a short one.");
  add_flags(program, text);
  program.word("experiment", experiment, "run one of the experiments by its name, or all");
  program.word(
      "encoder", encoder,
      "train a model that reads whole sequences: which-chapter (a classifier), or reversal (an "
      "encoder-decoder)");
  program.word("muon", muon,
               "show the optimizer Muon: values (what it makes of singular values), short (seconds "
               "of training beside AdamW), or long and longer (minutes)");
  program.output("svg", svg,
                 "train AdamW and Muon at their best rates, and write their loss to this file as "
                 "the chapter's figure (minutes)");
  program.size("seeds", seeds, "seeds of an experiment or an encoder");
  program.has_solutions(solutions);

  TaskTable table{{}, {{"file", "folder"}}};
  table.tasks.push_back({"experiment", {"seeds", "file", "folder"}, [&] {
                           return show_experiments(experiment, text_of(text), seeds);
                         }});
  table.tasks.push_back(
      {"encoder", {"seeds", "file", "folder"}, [&] { return show_encoder(encoder, text, seeds); }});
  table.tasks.push_back(
      {"muon", {"file", "folder"}, [&] { return show_muon(muon, text_of(text)); }});
  table.tasks.push_back(
      {"svg", {"file", "folder"}, [&] {
         write_file(svg, figure_of_muon(byte_ids(split_by_passage(text_of(text)).train)));
         return 0;
       }});
  table.tasks.push_back({"", {"file", "folder", "save"}, [&] {
                           list_experiments();
                           program.save("losses", show_short_experiment(text_of(text)));
                           return 0;
                         }});
  return program.run_tasks(argc, argv, table);
}
