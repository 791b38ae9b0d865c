// The choice follows the predictions for rungs 6 to 10 on page 11: rung 10 has never run on a GPU.
// Rung 6 would run on GPUs newer than Hopper, too, but it is predicted for Hopper alone, and there
// to be at most 6 % faster than rung 4, which was measured.
#include "11_flash_attention/kernels/best_rung.hpp"

#include "cuda/device.hpp"
#include "shapes.hpp"

namespace t2t {

static std::string to_text(int capability) {
  return std::to_string(capability / 10) + "." + std::to_string(capability % 10);
}

PromptRung best_rung(int capability) {
  expect(capability >= 80, "compute capability", "8.0 or newer", capability / 10.0);
  if (capability == 90)
    return {"10 (persistent)", [](const AttentionCall<bf16>& call) { attend_persistent(call); }};
  return {"4 (swizzle, async)",
          [](const AttentionCall<bf16>& call) { attend_swizzle_async(call); }};
}

void attend_prompt(const AttentionCall<bf16>& call) {
  best_rung(compute_capability()).attend(call);
}

std::string best_rung_text(int capability) {
  return std::string("prompts attend by rung ") + best_rung(capability).name +
         ", the best for compute capability " + to_text(capability);
}

}  // namespace t2t
