#include "20_split_models/tensor_parallel/split_gradients.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <stdexcept>

#include "01_embedding/embedding.hpp"
#include "03_rope/positions/positions.hpp"
#include "13_training/attention/attention_backward.hpp"
#include "13_training/backward/embedding_backward.hpp"
#include "13_training/backward/linear_backward.hpp"
#include "13_training/backward/norm_backward_rows.hpp"
#include "19_ranks/counting/costs.hpp"
#include "20_split_models/tensor_parallel/parallel_state.hpp"
#include "20_split_models/tensor_parallel/shard_weights.hpp"
#include "20_split_models/tensor_parallel/split_loss.hpp"
#include "linalg.hpp"
#include "rows.hpp"
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

/// Chapter 13's slots: each rank has a term of what a sublayer adds, and of the gradient of what it
/// read, and the logits of its own tokens.
static TrainingFunctions functions_of(const Communicator& ranks, std::size_t V) {
  TrainingFunctions functions;
  functions.sum_terms = [ranks](Matrix term) { sum_over_ranks(ranks, term); };
  functions.loss = [ranks, V](Matrix logits, std::span<const int> targets, float scale) {
    return split_cross_entropy_rows(ranks, V, logits, targets, scale);
  };
  return functions;
}

SplitGradients::SplitGradients(const Communicator& ranks, const Config& whole, std::size_t B,
                               std::size_t T)
    : ranks_(ranks),
      B_(B),
      T_(T),
      V_(whole.V),
      tokens_(range_of(whole.V, ranks.size, ranks.rank)),
      own_(trained_config_of(whole, {ranks.rank, ranks.size})),
      passes_(own_, B, T, functions_of(ranks, V_)),
      kept_(make_kept(settings_of_all(own_), B * T)),
      own_rows_(empty(B * T, own_.block.C)) {}

/// The batch's embedding, whole on each rank: one of them has a token's row.
void SplitGradients::embed(const Model& own, const Batch& batch, const Dropout& dropout) {
  expect_ids(batch.ids, V_);
  const Weight& table = own.weights().embedding;
  const Matrix x = passes_.x();
  for_each_row(x.rows, x.cols, [&](std::size_t t) {
    const std::size_t id = std::size_t(batch.ids[t]);
    if (id >= tokens_.begin && id < tokens_.end)
      table.row(id - tokens_.begin, x.row(t));
    else
      std::ranges::fill(x.row(t), 0.0f);
  });
  // Learned positions are zeros on all ranks but 0.
  for (std::size_t b = 0; own_.learned_positions && b < B_; ++b)
    add_positions(x.rows_from(b * T_, T_), own.weights().positions.floats(), 0);
  sum_over_ranks(ranks_, x);
  dropout_rows(dropout, Part::embedding, 0, x);
}

/// Adds to the rows of the own tokens.
void SplitGradients::embedding_backward(const Batch& batch, ModelWeights& gradients,
                                        const Dropout& dropout) {
  const Matrix dx = passes_.dx();
  dropout_rows(dropout, Part::embedding, 0, dx);
  std::vector<int> ids;
  for (std::size_t t = 0; t < batch.ids.size(); ++t) {
    const std::size_t id = std::size_t(batch.ids[t]);
    if (id < tokens_.begin || id >= tokens_.end) continue;
    std::ranges::copy(dx.row(t), row(own_rows_, ids.size()).begin());
    ids.push_back(int(id - tokens_.begin));
  }
  add_embedding_gradient(ids, ConstMatrix(own_rows_).rows_from(0, ids.size()),
                         gradients.embedding.floats());
  if (own_.learned_positions && ranks_.rank == 0)
    add_positions_gradient(T_, dx, gradients.positions.floats());
}

double SplitGradients::add(const Model& own, const Batch& batch, float scale,
                           ModelWeights& gradients, const Dropout& dropout) {
  expect_batch(batch, B_, T_);
  embed(own, batch, dropout);
  for (std::size_t l = 0; l < own_.L; ++l) passes_.forward(own.block(l), &kept_[l], dropout);
  const double loss = passes_.head(own, batch, scale, &gradients);
  for (std::size_t l = own_.L; l-- > 0;)
    passes_.backward(own.block(l), kept_[l], gradients.blocks[l], dropout);
  embedding_backward(batch, gradients, dropout);
  return loss;
}

Sent split_gradients_cost(const Config& whole, std::size_t N, std::size_t ranks, std::size_t rank) {
  Sent sent = split_cross_entropy_cost(N, ranks, rank);
  for (std::size_t i = 0; i < 4 * whole.L + 2; ++i)
    sent += ring_all_reduce_cost(N * whole.block.C, ranks, rank);
  return sent;
}

}  // namespace t2t
