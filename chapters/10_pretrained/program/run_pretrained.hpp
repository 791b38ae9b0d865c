// This chapter's program, without its main: chapter 11's program for a GPU is the same one.
#pragma once

#include <vector>

#include "10_pretrained/chat/make_state.hpp"
#include "program/solutions.hpp"

namespace t2t {

/// Runs the task that the flags ask for, and returns the exit status. on_gpu makes the states when
/// --gpu is given; if it is empty, --gpu is refused.
int run_pretrained(int argc, char** argv, std::vector<Solution> (*solutions)(),
                   const MakeState& on_gpu = {});

}  // namespace t2t
