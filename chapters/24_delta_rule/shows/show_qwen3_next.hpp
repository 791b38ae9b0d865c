// A file of Qwen3-Next's architecture: its sizes, what it keeps of a sequence, and ids that it
// continues.
#pragma once

#include <cstddef>
#include <string>

#include "program/program.hpp"

namespace t2t {

struct Qwen3NextFlags {
  std::string model, prompt, ids;
  std::size_t tokens = 64;  // to generate, at most
};

/// Returns the exit status. Throws as read_qwen3_next does, and std::invalid_argument for a prompt
/// that the model cannot take.
int show_qwen3_next(const Program& program, const Qwen3NextFlags& flags);

}  // namespace t2t
