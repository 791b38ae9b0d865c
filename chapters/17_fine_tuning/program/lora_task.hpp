// --fine-tune: a real model learns the answers to some questions, shown before and after. For
// main.cpp.
#pragma once

#include <string>

#include "10_pretrained/program/default_model.hpp"
#include "17_fine_tuning/lora.hpp"
#include "program/program.hpp"
#include "program/tasks.hpp"

namespace t2t {

/// The path of a text beside this file.
std::string text_beside(const std::string& name);

struct LoraFlags {
  std::string fine_tune, model = default_model(), merge, matrices = "w_q,w_k,w_v,w_o,w_up,w_down";
  std::string questions = text_beside("questions.txt"), ask = text_beside("held_out_questions.txt");
  std::string other = text_beside("other_text.txt");
  std::size_t rank = 8, epochs = 12, batch = 6;
  float rate = 2e-3f;
};

void add_flags(Program& program, LoraFlags& flags);

/// The adapter that the flags ask for. Batches, steps and seed are the task's.
LoraOptions lora_options(const LoraFlags& flags);

/// --fine-tune.
Task fine_tune_task(const Program& program, const LoraFlags& flags);

}  // namespace t2t
