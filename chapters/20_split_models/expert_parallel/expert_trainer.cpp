#include "20_split_models/expert_parallel/expert_trainer.hpp"

#include <fmt/format.h>

#include <numeric>

#include "19_ranks/collectives/ring.hpp"
#include "19_ranks/collectives/values.hpp"
#include "19_ranks/data_parallel/data_trainer.hpp"
#include "19_ranks/sharded/sharded_step.hpp"
#include "20_split_models/expert_parallel/experts_elsewhere.hpp"
#include "20_split_models/tensor_parallel/own_tensors.hpp"
#include "random.hpp"
#include "shapes.hpp"

namespace t2t {

/// Everything but other ranks' experts.
static IsOwn all_but_elsewhere(const Config& config, const Communicator& ranks) {
  return [&config, ranks](const TensorInfo& info) {
    return !is_elsewhere(info, config, ranks.size, ranks.rank);
  };
}

ExpertTrainer::ExpertTrainer(const Communicator& ranks, const Config& config,
                             const ModelWeights& weights, const TrainingOptions& options,
                             std::span<const int> ids, const ExpertCapacity& capacity)
    : ranks_(ranks),
      options_(options),
      model_(config, without_others_experts(weights, config, ranks.size, ranks.rank)),
      windows_(ids, options.T, options.seed),
      batch_(make_batch(options.B, options.T)),
      experts_(ranks, config.L, Scoring::softmax, capacity),
      passes_(config, options.B, options.T, {.network = experts_.network()}),
      kept_(make_kept(settings_of_all(config), options.B * options.T, false)),
      gradients_(zeros_of(config, all_but_elsewhere(config, ranks))),
      gradients_list_(own_tensors(gradients_, config, all_but_elsewhere(config, ranks))),
      optimizer_({options.schedule, options.adamw, 0},
                 own_tensors(model_, config, all_but_elsewhere(config, ranks)), gradients_list_) {
  expect(options.parts == ranks.size, "parts of a batch",
         fmt::format("{}, one for each rank", ranks.size), options.parts);
}

/// Adds the gradients of the own part, and of other parts' rows that came to the own experts.
/// Returns the sum of the own losses.
double ExpertTrainer::add_gradients() {
  const std::uint64_t number = optimizer_.steps_done() * options_.parts + ranks_.rank;
  const Dropout dropout = {options_.dropout, seed_of(SeedOf::step, options_.seed, number)};
  windows_.fill(batch_, number * options_.B);
  passes_.embed(model_, batch_, dropout);
  const std::size_t L = model_.config().L;
  for (std::size_t l = 0; l < L; ++l) passes_.forward(model_.block(l), &kept_[l], dropout);
  const float scale = 1 / float(options_.parts * options_.B * options_.T);
  const double loss = passes_.head(model_, batch_, scale, &gradients_);
  for (std::size_t l = L; l-- > 0;)
    passes_.backward(model_.block(l), kept_[l], gradients_.blocks[l], dropout);
  passes_.embedding_backward(batch_, gradients_, dropout);
  return loss;
}

/// Σ g² over the own experts, and on rank 0 also over what all ranks have.
double ExpertTrainer::squares_of_gradients() const {
  return squares_of(gradients_list_, [&](const ListedTensor& tensor) {
    return tensor.info.expert || ranks_.rank == 0;
  });
}

StepReport ExpertTrainer::step() {
  optimizer_.begin_step();
  std::vector<double> losses(ranks_.size, 0.0);
  losses[ranks_.rank] = add_gradients();
  for (const ListedTensor& tensor : gradients_list_)
    if (!tensor.info.expert) ring_all_reduce(ranks_, tensor.numbers);
  const double loss = mean_loss(ranks_, losses, options_);
  const std::vector<double> squares = value_of_each(ranks_, squares_of_gradients());
  const double norm = finite_norm(std::accumulate(squares.begin(), squares.end(), 0.0),
                                  optimizer_.steps_done() + 1, loss);
  return clipped_step(optimizer_, gradients_list_, norm, options_.clip, loss);
}

}  // namespace t2t
