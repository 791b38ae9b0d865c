#include "19_ranks/sharded/fsdp_trainer.hpp"

#include <utility>

#include "19_ranks/sharded/sharded_step.hpp"
#include "random.hpp"

namespace t2t {

/// Returns the options, once there are enough parts. A trainer begins with this.
static TrainingOptions checked_options(const Communicator& ranks, const TrainingOptions& options) {
  own_parts(ranks, options.parts);
  return options;
}

FsdpTrainer::FsdpTrainer(const Communicator& ranks, Model model, const TrainingOptions& options,
                         std::span<const int> ids, SumOrder order)
    : ranks_(ranks),
      options_(checked_options(ranks, options)),
      model_(ranks, std::move(model), options.parts, order),
      passes_(model_.config(), options.B, options.T),
      windows_(ids, options.T, options.seed),
      batch_(make_batch(options.B, options.T)),
      optimizer_({options.schedule, options.adamw, 0}, model_.weights(), model_.gradient_sums()) {}

/// Adds the gradient of one part, or only takes part if this step has no such part. Returns the sum
/// of the part's losses.
double FsdpTrainer::run_round(std::size_t part) {
  const std::size_t number = optimizer_.steps_done() * options_.parts + part;  // of all steps
  const float scale = 1 / float(options_.parts * options_.B * options_.T);
  const Dropout dropout = {options_.dropout, seed_of(SeedOf::step, options_.seed, number)};
  if (part >= options_.parts) return passes_.add(model_, nullptr, scale, dropout);
  windows_.fill(batch_, number * options_.B);
  return passes_.add(model_, &batch_, scale, dropout);
}

StepReport FsdpTrainer::step() {
  std::vector<double> losses(options_.parts);
  for (std::size_t round = 0; round * ranks_.size < options_.parts; ++round) {
    const std::size_t part = round * ranks_.size + ranks_.rank;
    model_.begin_round(round);
    const double loss = run_round(part);
    if (part < options_.parts) losses[part] = loss;
  }
  const double loss = mean_loss(ranks_, losses, options_);
  return step_of_shards(ranks_, optimizer_, model_.gradient_sums(), options_.clip, loss);
}

ShardState FsdpTrainer::state() {
  return {model_.weights(), optimizer_.means(), optimizer_.squares()};
}

/// The number of the step decides the batches, dropout and the rate.
void FsdpTrainer::resume(const std::filesystem::path& folder) {
  optimizer_.continue_from(load_shards(ranks_, folder, state()));
}

HeldBytes FsdpTrainer::held_bytes() {
  HeldBytes held = model_.held_bytes();
  held.optimizer = bytes_of(optimizer_.means()) + bytes_of(optimizer_.squares());
  return held;
}

}  // namespace t2t
