// The task --serve: a server for a model's file, until it is told to end. For main.cpp.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "10_pretrained/chat/session.hpp"
#include "15_serving/engine/model_runner.hpp"
#include "program/program.hpp"
#include "program/tasks.hpp"

namespace t2t {

/// How the model is run. The model outlives the runner.
using MakeRunner = std::function<ModelRunner(const Model& model, const EngineOptions& options)>;

/// What serves a model on a GPU: how the file's matrices are kept until the runner uploads them,
/// and the runner. Both are empty in a program without kernels.
struct ServeOnGpu {
  MakeWeight make_weight = {};
  MakeRunner make_runner = {};
};

struct ServeFlags {
  bool serve = false, floats = false;
  std::string model, host = "127.0.0.1", key_file, drafter, origin;
  std::size_t port = 8080, context = 2048, parallel = 16, waiting = 64, cache_tokens = 8192,
              budget = 128;
  std::size_t chunk = 0, drafts = 0, cache_bits = 32, swap = 0;
  ServeOnGpu on_gpu = {};  // if given, the model runs there
};

void add_flags(Program& program, ServeFlags& flags);

/// The flags must outlive it. It takes serve_flags() and `more`.
Task serve_task(const ServeFlags& flags, const std::vector<std::string>& more = {});
/// The flags that it takes.
std::vector<std::string> serve_flags();

/// What a server is made with.
struct ServeOptions {
  EngineOptions engine;
  std::string key;  // that clients must send; empty: none
};
/// Throws std::invalid_argument for flags that don't fit together, and std::runtime_error for a key
/// file without a key.
ServeOptions checked_options(const ServeFlags& flags);
/// How a file's matrices are stored and multiplied: a sequence gets the same bits whatever the
/// others are.
MakeWeight batch_invariant_matrices(bool all_as_floats);
/// Serves the session's model, which the runner runs, until SIGINT or SIGTERM. Returns the exit
/// status.
int serve(const ServeFlags& flags, const ServeOptions& options, const Session& session,
          ModelRunner runner);

}  // namespace t2t
