#include "20_split_models/tensor_parallel/split_trainer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "19_ranks/collectives/values.hpp"
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

SplitTrainer::SplitTrainer(const Communicator& ranks, const Config& whole,
                           const ModelWeights& weights, const TrainingOptions& options,
                           std::span<const int> ids)
    : ranks_(ranks),
      whole_(whole),
      options_(options),
      model_(trained_config_of(whole, {ranks.rank, ranks.size}),
             trained_shard_of(weights, whole, {ranks.rank, ranks.size})),
      windows_(ids, options.T, options.seed),
      batch_(make_batch(options.B, options.T)),
      passes_(ranks, whole, options.B, options.T),
      gradients_(zeros_of(model_.config())) {
  expect(options.parts >= 1, "parts of a batch", "at least 1", options.parts);
  const Shard shard = {ranks.rank, ranks.size};
  model_.change_weights([&](ModelWeights& own) { weights_list_ = learned_of(own, whole, shard); });
  gradients_list_ = learned_of(gradients_, whole, shard);
  std::size_t pieces = 0;
  for (const ListedTensor& tensor : weights_list_) {
    means_.emplace_back(tensor.numbers.size());
    squares_.emplace_back(tensor.numbers.size());
    pieces = std::max(pieces, adamw_pieces(tensor.numbers.size()));
  }
  scratch_.resize(pieces);
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

/// Moves the own weights. Returns the size of the matrices' move as a share of their own, on this
/// rank.
double SplitTrainer::update(float rate, float gradient_scale) {
  const AdamWStep step{options_.adamw, rate, steps_done_ + 1, gradient_scale};
  double moved = 0, size = 0;
  for (std::size_t i = 0; i < weights_list_.size(); ++i) {
    const bool decaying = decays(weights_list_[i].info.role);
    const Row w = weights_list_[i].numbers;
    const double before = gradient_norm({weights_list_[i]});
    const double of_tensor =
        adamw_step(step, decaying ? options_.adamw.decay : 0, w, gradients_list_[i].numbers,
                   means_[i], squares_[i], scratch_);
    if (decaying) moved += of_tensor, size += before * before;
  }
  return size > 0 ? std::sqrt(moved / size) : 0;
}

StepReport SplitTrainer::step() {
  const std::size_t n = steps_done_ + 1, tokens = options_.parts * options_.B * options_.T;
  for_each_tensor(gradients_, model_.config(), [](const TensorInfo&, auto& tensor) {
    if (tensor.size() > 0) std::ranges::fill(numbers_of(tensor), 0.0f);
  });
  double loss = 0;
  for (std::size_t part = 0; part < options_.parts; ++part) {
    const std::uint64_t number = std::uint64_t(steps_done_) * options_.parts + part;
    windows_.fill(batch_, number * options_.B);
    loss += passes_.add(model_, batch_, 1 / float(tokens), gradients_,
                        {options_.dropout, seed_of(SeedOf::step, options_.seed, number)});
  }
  loss /= double(tokens);
  const double norm = std::sqrt(sum_of_values(ranks_, {squares_of_gradients()})[0]);
  if (!std::isfinite(norm) || !std::isfinite(loss))
    throw std::runtime_error(fmt::format(
        "step {}: the gradient is not finite (loss {:.3g}); wanted a lower rate or more warm-up", n,
        loss));
  const float rate = rate_at(options_.schedule, n);
  const double ratio = update(rate, clip_factor(norm, options_.clip));
  steps_done_ = n;
  return {n, loss, norm, rate, ratio};
}

}  // namespace t2t
