#include "20_split_models/tensor_parallel/split_trainer.hpp"

#include <algorithm>

#include "19_ranks/collectives/values.hpp"
#include "19_ranks/sharded/sharded_step.hpp"
#include "20_split_models/tensor_parallel/own_tensors.hpp"
#include "random.hpp"
#include "shapes.hpp"

namespace t2t {

/// A rank learns all that it has, without biases and positions that another rank adds, which are
/// zeros here and must stay so.
static IsOwn learned(const Config& whole, Shard shard) {
  return [&whole, shard](const TensorInfo& info) { return !piece_of(info, whole, shard).zeros; };
}

SplitTrainer::SplitTrainer(const Communicator& ranks, const Config& whole,
                           const ModelWeights& weights, const TrainingOptions& options,
                           std::span<const int> ids)
    : ranks_(ranks),
      options_(options),
      model_(trained_config_of(whole, {ranks.rank, ranks.size}),
             trained_shard_of(weights, whole, {ranks.rank, ranks.size})),
      windows_(ids, options.T, options.seed),
      batch_(make_batch(options.B, options.T)),
      passes_(ranks, whole, options.B, options.T),
      gradients_(zeros_of(model_.config())),
      gradients_list_(own_tensors(gradients_, whole, learned(whole, {ranks.rank, ranks.size}))),
      optimizer_({options.schedule, options.adamw, 0},
                 own_tensors(model_, whole, learned(whole, {ranks.rank, ranks.size})),
                 gradients_list_) {
  expect(options.parts >= 1, "parts of a batch", "at least 1", options.parts);
}

/// Σ g² over its parts of divided tensors, and on rank 0 also over what all ranks have.
double SplitTrainer::squares_of_gradients() const {
  return squares_of(gradients_list_, [&](const ListedTensor& tensor) {
    const bool divided = tensor.numbers.size() < tensor.info.size();
    return divided || ranks_.rank == 0;
  });
}

StepReport SplitTrainer::step() {
  const std::size_t done = optimizer_.steps_done(),
                    tokens = options_.parts * options_.B * options_.T;
  for_each_tensor(gradients_, model_.config(), [](const TensorInfo&, auto& tensor) {
    if (tensor.size() > 0) std::ranges::fill(numbers_of(tensor), 0.0f);
  });
  double loss = 0;
  for (std::size_t part = 0; part < options_.parts; ++part) {
    const std::uint64_t number = std::uint64_t(done) * options_.parts + part;
    windows_.fill(batch_, number * options_.B);
    loss += passes_.add(model_, batch_, 1 / float(tokens), gradients_,
                        {options_.dropout, seed_of(SeedOf::step, options_.seed, number)});
  }
  loss /= double(tokens);
  const double squares = sum_of_values(ranks_, {squares_of_gradients()})[0];
  const double norm = finite_norm(squares, done + 1, loss);
  return clipped_step(optimizer_, gradients_list_, norm, options_.clip, loss);
}

}  // namespace t2t
