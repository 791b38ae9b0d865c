#include "20_split_models/tensor_parallel/split_trainer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "19_ranks/collectives/values.hpp"
#include "19_ranks/sharded/sharded_step.hpp"
#include "random.hpp"
#include "shapes.hpp"

namespace t2t {

/// The tensors that a rank learns, with their places in the whole model: without biases and
/// positions that another rank adds, which are zeros here and must stay so.
static std::vector<ListedTensor> learned_of(ModelWeights& own, const Config& whole, Shard shard) {
  std::vector<ListedTensor> list;
  for_each_tensor(own, whole, [&](const TensorInfo& info, auto& tensor) {
    if (info.size() > 0 && !piece_of(info, whole, shard).zeros)
      list.push_back({info, numbers_of(tensor)});
  });
  return list;
}
static std::vector<ListedTensor> learned_of(Model& model, const Config& whole, Shard shard) {
  std::vector<ListedTensor> list;
  model.change_weights([&](ModelWeights& own) { list = learned_of(own, whole, shard); });
  return list;
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
      gradients_list_(learned_of(gradients_, whole, {ranks.rank, ranks.size})),
      optimizer_({options.schedule, options.adamw, 0},
                 learned_of(model_, whole, {ranks.rank, ranks.size}), gradients_list_) {
  expect(options.parts >= 1, "parts of a batch", "at least 1", options.parts);
}

/// Σ g² over the tensors that this rank counts: its parts of divided tensors, and on rank 0 also
/// what all ranks have.
double SplitTrainer::squares_of_gradients() const {
  double sum = 0;
  for (const ListedTensor& tensor : gradients_list_) {
    const bool divided = tensor.numbers.size() < tensor.info.size();
    if (!divided && ranks_.rank != 0) continue;
    const double norm = gradient_norm({tensor});
    sum += norm * norm;
  }
  return sum;
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
  const double norm = std::sqrt(sum_of_values(ranks_, {squares_of_gradients()})[0]);
  if (!std::isfinite(norm) || !std::isfinite(loss))
    throw std::runtime_error(fmt::format(
        "step {}: the gradient is not finite (loss {:.3g}); wanted a lower rate or more warm-up",
        done + 1, loss));
  return clipped_step(optimizer_, gradients_list_, norm, options_.clip, loss);
}

}  // namespace t2t
