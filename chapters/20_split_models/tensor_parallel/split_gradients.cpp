#include "20_split_models/tensor_parallel/split_gradients.hpp"

#include <fmt/format.h>

#include <span>
#include <stdexcept>

#include "19_ranks/counting/costs.hpp"
#include "20_split_models/tensor_parallel/parallel_state.hpp"
#include "20_split_models/tensor_parallel/shard_weights.hpp"
#include "20_split_models/tensor_parallel/split_loss.hpp"
#include "shapes.hpp"

namespace t2t {

static void expect_gradients(const Config& whole, Shard shard) {
  expect_trained(differences_from_llama(whole));
  for (const BlockSettings& s : settings_of_all(whole)) {
    expect(shard.ranks <= s.G, "ranks that train", fmt::format("at most G = {}", s.G), shard.ranks);
    if (s.head_norms && shard.ranks > 1)
      throw std::invalid_argument(
          "head_norms: wanted none in training on several ranks, since all heads share the gains");
  }
}

Config trained_config_of(const Config& whole, Shard shard) {
  expect_gradients(whole, shard);
  Config own = config_of(whole, shard);
  own.V = range_of(whole.V, shard.ranks, shard.rank).size();
  return own;
}

ModelWeights trained_shard_of(const ModelWeights& weights, const Config& whole, Shard shard) {
  expect_gradients(whole, shard);
  return shard_of(weights, whole, shard, Tables::own_rows);
}

TrainingFunctions split_functions(const ShardGroup& ranks, std::size_t V) {
  TrainingFunctions functions;
  functions.sum_terms = [ranks](Matrix term) { sum_over_ranks(ranks, term); };
  functions.loss = [ranks, V](Matrix logits, std::span<const int> targets, float scale) {
    return split_cross_entropy_rows(ranks, V, logits, targets, scale);
  };
  return functions;
}

SplitGradients::SplitGradients(const ShardGroup& ranks, const Config& whole, std::size_t B,
                               std::size_t T)
    : B_(B),
      T_(T),
      own_(trained_config_of(whole, {ranks.rank, ranks.size})),
      embedding_(ranks, whole, B, T),
      passes_(own_, B, T, split_functions(ranks, whole.V)),
      kept_(make_kept(settings_of_all(own_), B * T)) {}

double SplitGradients::add(const Model& own, const Batch& batch, float scale,
                           ModelWeights& gradients, const Dropout& dropout) {
  expect_batch(batch, B_, T_);
  embedding_.embed(passes_, own, batch, dropout);
  for (std::size_t l = 0; l < own_.L; ++l) passes_.forward(own.block(l), &kept_[l], dropout);
  const double loss = passes_.head(own, batch, scale, &gradients);
  for (std::size_t l = own_.L; l-- > 0;)
    passes_.backward(own.block(l), kept_[l], gradients.blocks[l], dropout);
  embedding_.backward(passes_, batch, gradients, dropout);
  return loss;
}

Sent split_gradients_cost(const Config& whole, std::size_t N, std::size_t ranks, std::size_t rank) {
  Sent sent = split_cross_entropy_cost(N, ranks, rank);
  for (std::size_t i = 0; i < 4 * whole.L + 2; ++i)
    sent += ring_all_reduce_cost(N * whole.block.C, ranks, rank);
  return sent;
}

}  // namespace t2t
