#include "17_fine_tuning/preferences/policy.hpp"

#include <utility>

#include "shapes.hpp"

namespace t2t {

/// The model's tensors as rows. They stay valid, since a Model keeps its tensors where they are.
static std::vector<ListedTensor> weights_of(Model& model) {
  std::vector<ListedTensor> list;
  model.change_weights([&](ModelWeights& w) { list = tensors_of(w, model.config()); });
  return list;
}

Policy::Policy(Model model, const PolicyOptions& options)
    : model_(std::move(model)),
      passes_(model_.config(), options.B, options.T),
      gradients_(zeros_of(model_.config())),
      optimizer_(options.step, weights_of(model_), tensors_of(gradients_, model_.config())) {}

StepReport Policy::step_on(const Batch& batch, ConstRow weights) {
  optimizer_.begin_step();
  return optimizer_.end_step(passes_.add(model_, batch, weights, gradients_));
}

StepReport learn_answers(Policy& policy, const Batch& batch) {
  const std::size_t learned = count_learned(batch.targets);
  expect(learned > 0, "targets that are to be learned", "at least 1", 0);
  const std::vector<float> weights(batch.targets.size(), 1 / float(learned));
  return policy.step_on(batch, weights);
}

}  // namespace t2t
