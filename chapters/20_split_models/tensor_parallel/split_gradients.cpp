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

/// Rows whose logits are computed at once, as in chapter 13.
static std::size_t rows_at_once(std::size_t N, std::size_t V) {
  return std::clamp<std::size_t>((4 << 20) / V, 1, N);
}

/// Chapter 13's slots: what a sublayer read has a gradient on each rank, and they are summed.
static TrainingFunctions functions_of(const Communicator& ranks) {
  TrainingFunctions functions;
  functions.read_backward = [ranks](const Block&, Part, Matrix dread) {
    sum_over_ranks(ranks, dread);
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
      functions_(functions_of(ranks)),
      x_(empty(B * T, whole.block.C)),
      dx_(empty(B * T, whole.block.C)),
      logits_(empty(rows_at_once(B * T, own_.V), own_.V)),
      attention_(settings_of_all(own_), B, T),
      kept_(make_kept(settings_of_all(own_), B * T)),
      forward_scratch_(settings_of_all(own_), B * T),
      backward_scratch_(settings_of_all(own_), B, T, functions_) {
  expect(T >= 1 && T <= whole.T_max, "T, the tokens of a sequence",
         fmt::format("1 to T_max = {}", whole.T_max), T);
  for (std::size_t b = 0; b < B; ++b) runs_.push_back({.sequence = b, .position = 0, .rows = T});
  for (std::size_t l = 0; l < own_.L; ++l)
    backward_tables_.push_back(backward_table(attention_.table(l)));
}

/// x_ becomes the batch's embedding, whole on each rank: one of them has a token's row.
void SplitGradients::embed(const Model& own, const Batch& batch) {
  expect_ids(batch.ids, V_);
  const Weight& table = own.weights().embedding;
  for_each_row(x_.shape(0), x_.shape(1), [&](std::size_t t) {
    const std::size_t id = std::size_t(batch.ids[t]);
    if (id >= tokens_.begin && id < tokens_.end)
      table.row(id - tokens_.begin, row(x_, t));
    else
      std::ranges::fill(row(x_, t), 0.0f);
  });
  // Learned positions are zeros on all ranks but 0.
  for (std::size_t b = 0; own_.learned_positions && b < B_; ++b)
    add_positions(Matrix(x_).rows_from(b * T_, T_), own.weights().positions.floats(), 0);
  sum_over_ranks(ranks_, x_);
}

/// The final norm, the own tokens' logits and the loss. dx_ becomes the gradient of x_.
double SplitGradients::head(const Model& own, const Batch& batch, float scale,
                            ModelWeights& gradients) {
  const BlockSettings& s = own_.block;
  const Tensor<2>& table = own.head().floats();
  Weight& dtable = own_.tied ? gradients.embedding : gradients.head;
  Tensor<2>& normed = backward_scratch_.normed;    // [N, C]
  Tensor<2>& dnormed = backward_scratch_.dnormed;  // [N, C]
  norm_rows(x_, own.weights().final_norm, s.norm, s.eps, normed);
  double sum = 0;
  const std::size_t N = x_.shape(0), most = logits_.shape(0);
  for (std::size_t first = 0; first < N; first += most) {
    const std::size_t count = std::min(most, N - first);
    const Matrix rows = Matrix(normed).rows_from(first, count);
    const Matrix logits = Matrix(logits_).rows_from(0, count);
    matmul_bt(rows, ConstMatrix(table), logits);
    sum += split_cross_entropy_rows(ranks_, V_, logits,
                                    std::span(batch.targets).subspan(first, count), scale);
    add_weight_gradient(logits, rows, dtable.floats());
    matmul(logits, table, Matrix(dnormed).rows_from(first, count));
  }
  sum_over_ranks(ranks_, dnormed);
  dx_.fill(0);
  add_norm_backward(x_, own.weights().final_norm, s.norm, s.eps, dnormed, dx_, gradients.final_norm,
                    row(backward_scratch_.rows));
  return sum;
}

/// Adds dx_ to the rows of the own tokens.
void SplitGradients::add_embedding(const Batch& batch, ModelWeights& gradients) {
  std::vector<int> ids;
  Tensor<2>& own = backward_scratch_.normed;  // [N, C], the rows of own tokens one after the other
  for (std::size_t t = 0; t < batch.ids.size(); ++t) {
    const std::size_t id = std::size_t(batch.ids[t]);
    if (id < tokens_.begin || id >= tokens_.end) continue;
    std::ranges::copy(row(dx_, t), row(own, ids.size()).begin());
    ids.push_back(int(id - tokens_.begin));
  }
  add_embedding_gradient(ids, ConstMatrix(own).rows_from(0, ids.size()),
                         gradients.embedding.floats());
  if (own_.learned_positions && ranks_.rank == 0)
    add_positions_gradient(T_, dx_, gradients.positions.floats());
}

double SplitGradients::add(const Model& own, const Batch& batch, float scale,
                           ModelWeights& gradients, const Dropout& dropout) {
  const std::size_t N = B_ * T_;
  if (batch.B != B_ || batch.T != T_ || batch.ids.size() != N || batch.targets.size() != N)
    throw std::invalid_argument(
        fmt::format("batch: wanted B = {}, T = {}, got B = {}, T = {}", B_, T_, batch.B, batch.T));
  embed(own, batch);
  dropout_rows(dropout, Part::embedding, 0, x_);
  const BlockFunctions functions = {
      .attention = std::ref(attention_),
      .before_sum = [this, &dropout](const Block& block, Part part, ConstMatrix, Matrix added) {
        sum_over_ranks(ranks_, added);
        dropout_rows(dropout, part, block.layer(), added);
      }};
  const Trace keep = keep_in(kept_);
  for (std::size_t l = 0; l < own_.L; ++l) {
    kept_[l].x = x_;
    block_rows(x_, runs_, own.block(l), functions, forward_scratch_, keep);
  }
  const double loss = head(own, batch, scale, gradients);
  for (std::size_t l = own_.L; l-- > 0;)
    block_backward(own.block(l), kept_[l], backward_tables_[l], B_, backward_scratch_, dx_,
                   gradients.blocks[l], dropout, functions_);
  dropout_rows(dropout, Part::embedding, 0, dx_);
  add_embedding(batch, gradients);
  return loss;
}

Sent split_gradients_cost(const Config& whole, std::size_t N, std::size_t ranks, std::size_t rank) {
  Sent sent = split_cross_entropy_cost(N, ranks, rank);
  for (std::size_t i = 0; i < 4 * whole.L + 2; ++i)
    sent += ring_all_reduce_cost(N * whole.block.C, ranks, rank);
  return sent;
}

}  // namespace t2t
