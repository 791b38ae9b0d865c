#include "17_fine_tuning/preferences/lora_policy.hpp"

#include <utility>

namespace t2t {

LoraPolicy::LoraPolicy(Model model, const LoraOptions& options)
    : loss_(options.B * options.T), trainer_(std::move(model), options, loss_.functions()) {}

StepReport LoraPolicy::step_on(const Batch& batch, ConstRow weights) {
  loss_.begin(batch, weights);
  return trainer_.scaled_step_on(batch, 1);
}

}  // namespace t2t
