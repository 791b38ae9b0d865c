#include "13_training/trainer/trainer.hpp"

#include <algorithm>
#include <utility>

#include "random.hpp"
#include "shapes.hpp"

namespace t2t {

/// Returns the options, once they are good and fit the hooks. A trainer begins with this.
static TrainingOptions checked_options(const TrainingOptions& options, const TrainingHooks& hooks) {
  expect(options.parts >= 1, "parts of a batch", "at least 1", options.parts);
  expect(options.dropout >= 0 && options.dropout < 1, "dropout", "a probability from 0 to below 1",
         options.dropout);
  expect(!hooks.prepare || options.parts == 1, "parts of a batch that is prepared", "1",
         options.parts);
  return options;
}

/// The weights that have gradients; the gradients come in the weights' order. The rows that the
/// list has stay valid, since a Model keeps its tensors where they are.
static std::vector<ListedTensor> weights_of(Model& model,
                                            const std::vector<ListedTensor>& gradients) {
  std::vector<ListedTensor> list;
  model.change_weights([&](ModelWeights& w) { list = tensors_of(w, model.config()); });
  auto gradient = gradients.begin();
  std::erase_if(list, [&](const ListedTensor& tensor) {
    const bool learned =
        gradient != gradients.end() && full_name(gradient->info) == full_name(tensor.info);
    if (learned) ++gradient;
    return !learned;
  });
  return list;
}

Trainer::Trainer(Model model, const TrainingOptions& options, std::span<const int> ids,
                 TrainingHooks hooks)
    : options_(checked_options(options, hooks)),
      hooks_(std::move(hooks)),
      model_(std::move(model)),
      windows_(ids, options.T, options.seed),
      batch_(make_batch(options.B, options.T)),
      passes_(model_.config(), options.B, options.T, hooks_.functions),
      gradients_(zeros_of(model_.config(), hooks_.learned)),
      optimizer_({options.schedule, options.adamw, options.clip},
                 weights_of(model_, tensors_of(gradients_, model_.config())),
                 tensors_of(gradients_, model_.config())) {}

/// With dropout, each part of each step drops other elements; a repeated run drops the same ones.
double Trainer::add_gradients(const Batch& batch, std::size_t part, float scale) {
  const std::uint64_t pass = std::uint64_t(steps_done()) * options_.parts + part;
  return passes_.add(model_, batch, scale, gradients_,
                     {options_.dropout, seed_of(SeedOf::step, options_.seed, pass)});
}

StepReport Trainer::step() {
  if (hooks_.prepare) {
    windows_.fill(batch_, std::uint64_t(steps_done()) * options_.B);
    hooks_.prepare(batch_, seed_of(SeedOf::step, options_.seed, steps_done()));
    return step_on(batch_);
  }
  const std::size_t tokens = options_.parts * options_.B * options_.T;
  double sum = 0;
  optimizer_.begin_step();
  // Each part adds its share of the mean's gradient.
  for (std::size_t part = 0; part < options_.parts; ++part) {
    windows_.fill(batch_, (std::uint64_t(steps_done()) * options_.parts + part) * options_.B);
    sum += add_gradients(batch_, part, 1 / float(tokens));
  }
  return optimizer_.end_step(sum / double(tokens));
}

StepReport Trainer::step_on(const Batch& batch) {
  const std::size_t learned = count_learned(batch.targets);
  expect(learned > 0, "targets that are to be learned", "at least 1", 0);
  optimizer_.begin_step();
  return optimizer_.end_step(add_gradients(batch, 0, 1 / float(learned)) / double(learned));
}

double Trainer::loss_of(std::span<const int> ids, std::size_t most_windows) {
  const std::size_t T = options_.T, at_once = options_.B * T;
  if (most_windows < ids.size() / T) ids = ids.first(most_windows * T + 1);
  double sum = 0;
  std::size_t learned = 0;
  for (std::size_t first = 0; fill_in_order(batch_, ids, first); first += at_once) {
    if (hooks_.prepare) hooks_.prepare(batch_, first);
    sum += passes_.loss(model_, batch_);
    learned += count_learned(batch_.targets);
  }
  expect(learned > 0, "ids, a text to measure", "at least 2 tokens", ids.size());
  return sum / double(learned);
}

Trainer::Memory Trainer::memory() const {
  const std::size_t weights = bytes(model_.weights());
  return {weights, weights, 2 * weights, passes_.kept_bytes(), passes_.scratch_bytes()};
}

}  // namespace t2t
