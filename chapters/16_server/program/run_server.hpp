// This chapter's program, without its main: the one for a GPU is the same.
#pragma once

#include <vector>

#include "16_server/program/serve_task.hpp"
#include "program/solutions.hpp"

namespace t2t {

/// Runs the task that the flags ask for, and returns the exit status. on_gpu keeps and
/// runs the model when --gpu is given; if it is empty, --gpu is refused.
int run_server(int argc, char** argv, std::vector<Solution> (*solutions)(),
               const ServeOnGpu& on_gpu = {});

}  // namespace t2t
