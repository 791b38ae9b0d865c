// --file and --folder: the text that a program learns from. For main.cpp.
#pragma once

#include <string>

#include "program/program.hpp"

namespace t2t {

struct TextFlags {
  std::string file, folder;
};

void add_flags(Program& program, TextFlags& flags);

/// The text that the flags name, or the book's pages.
std::string text_of(const TextFlags& flags);

/// The folder of the book's pages.
std::string pages_folder();

}  // namespace t2t
