// The task --quantize: its flags, and what it prints. For main.cpp.
#pragma once

#include <string>
#include <vector>

#include "program/program.hpp"
#include "program/tasks.hpp"

namespace t2t {

struct QuantizeFlags {
  std::vector<std::string> files;  // the model's, and the new one
  std::string type, importance;
  bool search = false;
};

void add_flags(Program& program, QuantizeFlags& flags);

/// Writes the file, and describes its contents. A text for --importance is read in windows of so
/// many tokens (chapter 10's --window).
Task quantize_task(const QuantizeFlags& flags, const std::size_t& window);

}  // namespace t2t
