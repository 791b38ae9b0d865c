#include "19_ranks/sharded/sharded_passes.hpp"

#include <functional>
#include <span>

#include "09_language_model/fast/forward.hpp"
#include "13_training/attention/attention_backward.hpp"
#include "13_training/backward/embedding_backward.hpp"
#include "13_training/backward/linear_backward.hpp"
#include "13_training/backward/norm_backward_rows.hpp"
#include "linalg.hpp"
#include "rows.hpp"

namespace t2t {

/// Returns the config, once chapter 13 can train such a model. All that takes memory comes after.
static const Config& trained(const Config& config) {
  expect_trained(differences_from_llama(config));
  return config;
}

ShardedPasses::ShardedPasses(const Config& config, std::size_t B, std::size_t T)
    : B_(B),
      T_(T),
      x_(empty(B * T, trained(config).block.C)),
      dx_(empty(B * T, config.block.C)),
      logits_(empty(B * T, config.V)),
      losses_(B * T),
      attention_(settings_of_all(config), B, T),
      kept_(make_kept(settings_of_all(config), B * T)),
      forward_scratch_(settings_of_all(config), B * T),
      backward_scratch_(settings_of_all(config), B, T) {
  for (std::size_t b = 0; b < B; ++b) runs_.push_back({.sequence = b, .position = 0, .rows = T});
  for (std::size_t l = 0; l < config.L; ++l)
    backward_tables_.push_back(backward_table(attention_.table(l)));
}

double ShardedPasses::add(ShardedModel& model, const Batch* batch, float scale,
                          const Dropout& dropout) {
  double sum = 0;
  model.gather_embedding();
  if (batch) embed(model, *batch, dropout);
  for (std::size_t l = 0; l < kept_.size(); ++l) {
    model.gather_block(l);
    if (batch) forward(model.block(l), dropout);
  }
  model.gather_head();
  if (batch) sum = head(model, *batch, scale);
  model.scatter_head();
  for (std::size_t l = kept_.size(); l-- > 0;) {
    model.gather_block(l);
    if (batch) backward(model.block(l), model.gradients(), dropout);
    model.scatter_block(l);
  }
  if (batch) embedding_backward(model, *batch, dropout);
  model.scatter_embedding();
  return sum;
}

void ShardedPasses::embed(const ShardedModel& model, const Batch& batch, const Dropout& dropout) {
  for (std::size_t b = 0; b < B_; ++b)
    embed_tokens(model.room(), std::span(batch.ids).subspan(b * T_, T_), 0,
                 Matrix(x_).rows_from(b * T_, T_));
  dropout_rows(dropout, Part::embedding, 0, x_);
}

/// x_ goes through the block, which keeps what its backward pass needs.
void ShardedPasses::forward(const Block& block, const Dropout& dropout) {
  const BlockFunctions functions = {
      .attention = std::ref(attention_),
      .before_sum = [&](const Block& of, Part part, ConstMatrix, Matrix added) {
        dropout_rows(dropout, part, of.layer(), added);
      }};
  kept_[block.layer()].x = x_;
  block_rows(x_, runs_, block, functions, forward_scratch_, keep_in(kept_));
}

/// The final norm, the head and the loss. dx_ becomes the gradient of x_.
double ShardedPasses::head(ShardedModel& model, const Batch& batch, float scale) {
  const Config& config = model.config();
  const BlockSettings& s = config.block;
  const NormWeights& norm = model.room().weights().final_norm;
  const Tensor<2>& table = model.room().head().floats();
  ModelWeights& gradients = model.gradients();
  Tensor<2>& normed = backward_scratch_.normed;
  Tensor<2>& dnormed = backward_scratch_.dnormed;
  norm_rows(x_, norm, s.norm, s.eps, normed);
  matmul_bt(normed, ConstMatrix(table), logits_);
  const double sum = cross_entropy_rows(logits_, batch.targets, scale, losses_);

  Weight& dtable = config.tied ? gradients.embedding : gradients.head;
  add_weight_gradient(logits_, normed, dtable.floats());
  matmul(logits_, table, dnormed);
  dx_.fill(0);
  add_norm_backward(x_, norm, s.norm, s.eps, dnormed, dx_, gradients.final_norm,
                    row(backward_scratch_.rows));
  return sum;
}

void ShardedPasses::backward(const Block& block, ModelWeights& gradients, const Dropout& dropout) {
  const std::size_t l = block.layer();
  block_backward(block, kept_[l], backward_tables_[l], B_, backward_scratch_, dx_,
                 gradients.blocks[0], dropout);
}

void ShardedPasses::embedding_backward(ShardedModel& model, const Batch& batch,
                                       const Dropout& dropout) {
  dropout_rows(dropout, Part::embedding, 0, dx_);
  add_embedding_gradient(batch.ids, dx_, model.gradients().embedding.floats());
  if (model.config().learned_positions)
    add_positions_gradient(T_, dx_, model.gradients().positions.floats());
}

}  // namespace t2t
