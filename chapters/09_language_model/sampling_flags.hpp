// The flags of sampling, for the programs that have them: this chapter's and chapter 10's.
#pragma once

#include "09_language_model/sampling.hpp"
#include "program.hpp"

namespace t2t {

/// --temperature, --top-k, --top-p and --min-p, with their defaults in sampling.
inline void add_sampling_flags(Program& program, Sampling& sampling) {
  program.number("temperature", sampling.temperature, "of sampling; 0 is greedy");
  program.size("top-k", sampling.top_k, "tokens to keep; 0 keeps all", 0);
  program.number("top-p", sampling.top_p, "probability to keep");
  program.number("min-p", sampling.min_p, "share of the likeliest's to ask for");
}

}  // namespace t2t
