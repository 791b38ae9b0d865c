// The flags of this chapter's program, and which of them go together. For main.cpp.
#pragma once

#include <string>
#include <vector>

#include "09_language_model/sampling.hpp"
#include "10_pretrained/chat/make_state.hpp"
#include "10_pretrained/model/load_model.hpp"
#include "10_pretrained/program/default_model.hpp"
#include "program/program.hpp"

namespace t2t {

/// What the flags say.
struct Flags {
  std::string model = default_model(), prompt, ids, system, pairing;
  std::string tokenize, tokenize_file, logits, perplexity, by_position, trace, with;
  std::string rope_scaling, export_to, adapter;
  std::vector<std::string> compare;
  std::size_t tokens = 64, window = 512, context = 2048;
  bool chat = false, special = false, bench = false, info = false, alone = false;
  Sampling sampling = {.temperature = 0};
  // Not flags: what a program makes of the file's matrices, how it stores keys and values, and
  // whether its states can run experts.
  MakeWeight make_weight = {};
  MakeState make_state = {};
  bool runs_experts = false;
};

void add_flags(Program& program, Flags& flags);

/// Values that no task can use. Throws std::invalid_argument.
void expect_flags(const Program& program, const Flags& flags);

std::vector<int> parse_ids(const std::string& text, std::size_t V);

}  // namespace t2t
