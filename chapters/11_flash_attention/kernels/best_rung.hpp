// Which rung a prompt attends by, chosen by the GPU. Runs on the host.
#pragma once

#include <string>

#include "11_flash_attention/kernels/kernels.hpp"

namespace t2t {

/// A rung for many queries of a sequence.
struct PromptRung {
  const char* name;  // "10 (persistent)"
  void (*attend)(const AttentionCall<bf16>& call);
};

/// The best rung that GPUs of this compute capability (90 for 9.0) can run: rung 10 on 9.0, whose
/// products of a warpgroup no other GPU has, and rung 4 on all others from 8.0 on. Throws
/// std::invalid_argument below 8.0.
PromptRung best_rung(int capability);

/// Attends by the best rung for this GPU. Throws as the rung does.
void attend_prompt(const AttentionCall<bf16>& call);

/// "prompts attend by rung 4 (swizzle, async), the best for compute capability 8.0"
std::string best_rung_text(int capability);

}  // namespace t2t
