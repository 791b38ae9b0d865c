#include "13_training/trainer.hpp"

#include <algorithm>
#include <utility>

#include "shapes.hpp"

namespace t2t {

static TrainingOptions checked(const TrainingOptions& options) {
  expect(options.parts >= 1, "parts of a batch", "at least 1", double(options.parts));
  return options;
}

/// The rows that the list has stay valid, since a Model keeps its tensors where they are.
static std::vector<ListedTensor> weights_of(Model& model) {
  std::vector<ListedTensor> list;
  model.change_weights([&](ModelWeights& w) { list = tensors_of(w, model.config()); });
  return list;
}

Trainer::Trainer(Model model, const TrainingOptions& options, std::span<const int> ids)
    : options_(checked(options)),
      model_(std::move(model)),
      windows_(ids, options.T, options.seed),
      batch_{options.B, options.T, std::vector<int>(options.B * options.T),
             std::vector<int>(options.B * options.T)},
      passes_(model_.config(), options.B, options.T),
      gradients_(zeros_like(model_.weights(), model_.config())),
      optimizer_({options.schedule, options.adamw, options.clip}, weights_of(model_),
                 tensors_of(gradients_, model_.config())) {}

StepReport Trainer::step() {
  const std::size_t tokens = options_.parts * options_.B * options_.T;
  double sum = 0;
  optimizer_.begin_step();
  // Each part adds its share of the mean's gradient.
  for (std::size_t part = 0; part < options_.parts; ++part) {
    windows_.fill(batch_, (std::uint64_t(steps_done()) * options_.parts + part) * options_.B);
    sum += passes_.add(model_, batch_, 1 / float(tokens), gradients_);
  }
  return optimizer_.end_step(sum / double(tokens));
}

StepReport Trainer::step_on(const Batch& batch) {
  const std::size_t learned = count_learned(batch.targets);
  expect(learned > 0, "targets that are to be learned", "at least 1", 0);
  optimizer_.begin_step();
  return optimizer_.end_step(passes_.add(model_, batch, 1 / float(learned), gradients_) /
                             double(learned));
}

double Trainer::loss_of(std::span<const int> ids, std::size_t most_windows) {
  const std::size_t T = options_.T, at_once = options_.B * T;
  if (most_windows < ids.size() / T) ids = ids.first(most_windows * T + 1);
  double sum = 0;
  std::size_t learned = 0;
  for (std::size_t first = 0; fill_in_order(batch_, ids, first); first += at_once) {
    sum += passes_.loss(model_, batch_);
    learned += count_learned(batch_.targets);
  }
  expect(learned > 0, "ids, a text to measure", "at least 2 tokens", double(ids.size()));
  return sum / double(learned);
}

Trainer::Memory Trainer::memory() const {
  const std::size_t weights = bytes(model_.weights());
  return {weights, weights, 2 * weights, passes_.kept_bytes(), passes_.scratch_bytes()};
}

}  // namespace t2t
