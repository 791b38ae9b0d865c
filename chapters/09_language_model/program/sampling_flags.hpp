// The command line's flags for sampling, in this chapter's program and in chapter 10's.
#pragma once

#include <string>
#include <vector>

#include "09_language_model/sampling.hpp"
#include "program/program.hpp"

namespace t2t {

/// --temperature, --top-k, --top-p and --min-p, with their defaults in sampling.
inline void add_sampling_flags(Program& program, Sampling& sampling) {
  program.number("temperature", sampling.temperature,
                 "temperature of sampling; 0 always chooses the likeliest token");
  program.size("top-k", sampling.top_k, "how many of the likeliest tokens to keep; 0 keeps all", 0);
  program.number("top-p", sampling.top_p,
                 "keep the likeliest tokens whose probabilities sum to this");
  program.number("min-p", sampling.min_p,
                 "keep tokens at least this many times as likely as the likeliest");
}

/// Their names.
inline std::vector<std::string> sampling_flags() {
  return {"temperature", "top-k", "top-p", "min-p"};
}

}  // namespace t2t
