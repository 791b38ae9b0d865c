#include "13_training/program/chosen_text.hpp"

#include "13_training/text/training_text.hpp"

namespace t2t {

void add_flags(Program& program, TextFlags& flags) {
  program.input("file", flags.file, "text to learn from; default: the book's own pages");
  program.input("folder", flags.folder, "learn from all .md and .txt files of this folder", "DIR");
}

std::string pages_folder() { return T2T_PAGES; }

std::string text_of(const TextFlags& flags) {
  if (!flags.file.empty()) return text_of_file(flags.file);
  return text_of_folder(flags.folder.empty() ? pages_folder() : flags.folder);
}

}  // namespace t2t
