// The task --serve: a server for a model's file, until it is told to end. For main.cpp.
#pragma once

#include <cstddef>
#include <string>

#include "program/program.hpp"
#include "program/tasks.hpp"

namespace t2t {

struct ServeFlags {
  bool serve = false, floats = false;
  std::string model, host = "127.0.0.1", key_file, drafter, origin;
  std::size_t port = 8080, context = 2048, parallel = 16, waiting = 64, cache_tokens = 8192,
              budget = 128;
  std::size_t chunk = 0, drafts = 0, cache_bits = 32, swap = 0;
};

void add_flags(Program& program, ServeFlags& flags);

/// The flags must outlive it.
Task serve_task(const ServeFlags& flags);

}  // namespace t2t
