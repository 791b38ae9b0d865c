#include "13_training/backward/passes.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <span>
#include <stdexcept>
#include <utility>

#include "09_language_model/accounts/accounts.hpp"
#include "09_language_model/fast/forward.hpp"
#include "13_training/attention/attention_backward.hpp"
#include "13_training/backward/embedding_backward.hpp"
#include "13_training/backward/linear_backward.hpp"
#include "13_training/backward/norm_backward_rows.hpp"
#include "linalg.hpp"
#include "memory.hpp"
#include "rows.hpp"
#include "shapes.hpp"

namespace t2t {

Batch make_batch(std::size_t B, std::size_t T) {
  return {B, T, std::vector<int>(B * T), std::vector<int>(B * T)};
}

void expect_batch(const Batch& batch, std::size_t B, std::size_t T) {
  const std::size_t N = B * T;
  if (batch.B != B || batch.T != T || batch.ids.size() != N || batch.targets.size() != N)
    throw std::invalid_argument(fmt::format(
        "batch: wanted B = {}, T = {} with {} ids and targets, got B = {}, T = {} with {} and {}",
        B, T, N, batch.B, batch.T, batch.ids.size(), batch.targets.size()));
}

/// Rows whose logits are computed at once: about 16 MB of them.
static std::size_t rows_at_once(std::size_t N, std::size_t V) {
  return std::clamp<std::size_t>((4 << 20) / V, 1, N);
}

/// Returns the functions, once a model of this config can be trained with them on B sequences of T
/// tokens and there is memory for that. All that takes memory is made after it.
static TrainingFunctions checked_functions(const Config& config, std::size_t B, std::size_t T,
                                           TrainingFunctions functions) {
  expect_config(config);
  expect_trained(differences_from_llama(config), functions);
  expect(B >= 1, "B, the sequences of a batch", "at least 1", B);
  expect(T >= 1 && T <= config.T_max, "T, the tokens of a sequence",
         "1 to T_max = " + std::to_string(config.T_max), T);
  const TrainingMemory memory = training_memory(config, B, T, sizeof(float));
  expect_memory(memory.activations, "a batch",
                "make the batch, its sequences or the model smaller");
  return functions;
}

Passes::Passes(const Config& config, std::size_t B, std::size_t T, TrainingFunctions functions)
    : B_(B),
      T_(T),
      functions_(checked_functions(config, B, T, std::move(functions))),
      x_(empty(B * T, config.block.C)),
      dx_(empty(B * T, config.block.C)),
      logits_(empty(rows_at_once(B * T, config.V), config.V)),
      losses_(logits_.shape(0)),
      attention_(settings_of_all(config), B, T, functions_.attention),
      forward_scratch_(settings_of_all(config), B * T),
      backward_scratch_(settings_of_all(config), B, T, functions_) {
  for (std::size_t b = 0; b < B; ++b) runs_.push_back({.sequence = b, .position = 0, .rows = T});
  for (std::size_t l = 0; l < config.L; ++l)
    backward_tables_.push_back(backward_table(attention_.table(l)));
}

std::size_t Passes::scratch_bytes() const {
  const BlockScratch& s = forward_scratch_;
  std::size_t floats = x_.size() + dx_.size() + logits_.size();
  for (const Tensor<2>* x :
       {&s.normed, &s.q, &s.k, &s.v, &s.heads, &s.added, &s.feed_forward.gate, &s.feed_forward.up})
    floats += x->size();
  return floats * sizeof(float) + bytes(backward_scratch_);
}

void Passes::embed(const Model& model, const Batch& batch, const Dropout& dropout) {
  for (std::size_t b = 0; b < B_; ++b)
    embed_tokens(model, std::span(batch.ids).subspan(b * T_, T_), 0, x().rows_from(b * T_, T_));
  dropout_rows(dropout, Part::embedding, 0, x_);
}

void Passes::forward(const Block& block, KeptBlock* kept, const Dropout& dropout) {
  attention_.leave_out(dropout);
  const BlockFunctions functions = {
      .attention = std::ref(attention_),
      .network = functions_.network.forward,
      .before_sum = [this, &dropout](const Block& of, Part part, ConstMatrix x, Matrix added) {
        if (functions_.sum_terms) functions_.sum_terms(added);
        dropout_rows(dropout, part, of.layer(), added);
        if (functions_.sum.forward) functions_.sum.forward(of, part, x, added);
      }};
  if (kept) kept->x = x_;
  block_rows(x_, runs_, block, functions, forward_scratch_, kept ? keep_in(*kept) : Trace{});
}

double Passes::head(const Model& model, const Batch& batch, float scale, ModelWeights* gradients) {
  const BlockSettings& s = model.config().block;
  const Tensor<2>& table = model.head().floats();
  Tensor<2>& normed = backward_scratch_.normed;    // [N, C]
  Tensor<2>& dnormed = backward_scratch_.dnormed;  // [N, C]
  norm_rows(x_, model.weights().final_norm, s.norm, s.eps, normed);
  double sum = 0;
  const std::size_t N = x_.shape(0), most = logits_.shape(0);
  for (std::size_t first = 0; first < N; first += most) {
    const std::size_t count = std::min(most, N - first);
    const Matrix rows = Matrix(normed).rows_from(first, count);
    const Matrix logits = Matrix(logits_).rows_from(0, count);
    const std::span targets = std::span(batch.targets).subspan(first, count);
    matmul_bt(rows, ConstMatrix(table), logits);
    sum += functions_.loss ? functions_.loss(logits, targets, scale)
                           : cross_entropy_rows(logits, targets, scale, losses_);
    if (!gradients) continue;
    Weight& dtable = model.config().tied ? gradients->embedding : gradients->head;
    add_weight_gradient(logits, rows, dtable.floats());
    matmul(logits, table, Matrix(dnormed).rows_from(first, count));
  }
  if (!gradients) return sum;
  if (functions_.sum_terms) functions_.sum_terms(dnormed);
  dx_.fill(0);
  add_norm_backward(x_, model.weights().final_norm, s.norm, s.eps, dnormed, dx_,
                    gradients->final_norm, row(backward_scratch_.rows));
  return sum;
}

double Passes::backward(const Block& block, const KeptBlock& kept, BlockWeights& gradients,
                        const Dropout& dropout) {
  return block_backward(block, kept, backward_tables_[block.layer()], B_, backward_scratch_, dx_,
                        gradients, dropout, functions_);
}

void Passes::embedding_backward(const Batch& batch, ModelWeights& gradients,
                                const Dropout& dropout) {
  dropout_rows(dropout, Part::embedding, 0, dx_);
  if (gradients.embedding.size() > 0)
    add_embedding_gradient(batch.ids, dx_, gradients.embedding.floats());
  if (gradients.positions.size() > 0) add_positions_gradient(T_, dx_, gradients.positions.floats());
}

}  // namespace t2t
