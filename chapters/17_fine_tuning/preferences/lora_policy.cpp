#include "17_fine_tuning/preferences/lora_policy.hpp"

#include <utility>

#include "shapes.hpp"

namespace t2t {

LoraPolicy::LoraPolicy(Model model, const LoraOptions& options)
    : loss_(options.B * options.T), trainer_(std::move(model), options, loss_.functions()) {}

StepReport LoraPolicy::step_on(const Batch& batch, ConstRow weights) {
  expect(!weights.empty(), "weights", "one for each of the batch's tokens", 0);
  loss_.begin(batch, weights);
  return trainer_.scaled_step_on(batch, 1);
}

}  // namespace t2t
