// The text that trainings on ranks learn: the one that perplexities are measured on, which never
// changes.
#pragma once

#include <string>

#include "13_training/program/chosen_text.hpp"
#include "files/files.hpp"

namespace t2t {

inline std::string measured_text() {
  return read_text_file(pages_folder() + "/recorded/text/measured.txt");
}

}  // namespace t2t
