#include "20_split_models/tensor_parallel/split_embedding.hpp"

#include <algorithm>
#include <vector>

#include "01_embedding/embedding.hpp"
#include "03_rope/positions/positions.hpp"
#include "13_training/attention/attention_backward.hpp"
#include "13_training/backward/embedding_backward.hpp"
#include "20_split_models/tensor_parallel/parallel_state.hpp"
#include "rows.hpp"

namespace t2t {

SplitEmbedding::SplitEmbedding(const ShardGroup& ranks, const Config& whole, std::size_t B,
                               std::size_t T)
    : ranks_(ranks),
      B_(B),
      T_(T),
      V_(whole.V),
      tokens_(range_of(whole.V, ranks.size, ranks.rank)),
      learned_positions_(whole.learned_positions),
      own_rows_(empty(B * T, whole.block.C)) {}

void SplitEmbedding::embed(Passes& passes, const Model& own, const Batch& batch,
                           const Dropout& dropout) const {
  expect_ids(batch.ids, V_);
  const Weight& table = own.weights().embedding;
  const Matrix x = passes.x();
  for_each_row(x.rows, x.cols, [&](std::size_t t) {
    const std::size_t id = std::size_t(batch.ids[t]);
    if (id >= tokens_.begin && id < tokens_.end)
      table.row(id - tokens_.begin, x.row(t));
    else
      std::ranges::fill(x.row(t), 0.0f);
  });
  // Learned positions are zeros on all ranks but 0.
  for (std::size_t b = 0; learned_positions_ && b < B_; ++b)
    add_positions(x.rows_from(b * T_, T_), own.weights().positions.floats(), 0);
  sum_over_ranks(ranks_, x);
  dropout_rows(dropout, Part::embedding, 0, x);
}

void SplitEmbedding::backward(Passes& passes, const Batch& batch, ModelWeights& gradients,
                              const Dropout& dropout) {
  const Matrix dx = passes.dx();
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
  if (learned_positions_ && ranks_.rank == 0)
    add_positions_gradient(T_, dx, gradients.positions.floats());
}

}  // namespace t2t
