// Puts a load on a server and prints what its clients see. For main.cpp.
#pragma once

#include "program/program.hpp"
#include "program/tasks.hpp"

namespace t2t {

struct LoadFlags {
  std::string load;
  float rate = 2;
  std::size_t requests = 64, words = 200, tokens = 64;
};

void add_flags(Program& program, LoadFlags& flags);

/// The flags and the program must outlive it.
Task load_task(const Program& program, const LoadFlags& flags);

}  // namespace t2t
