#include "13_training/backward/model_backward.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <stdexcept>
#include <type_traits>
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

static void set_to_zero(const TensorInfo& info, Tensor<1>& x) {
  x = xt::zeros<float>({info.size()});
}
static void set_to_zero(const TensorInfo& info, Weight& w) {
  if (info.size() > 0) w = Tensor<2>(xt::zeros<float>({info.rows, info.cols}));
}

ModelWeights zeros_of(const Config& config, const std::function<bool(const TensorInfo&)>& learned) {
  ModelWeights zeros = room_for(config);
  for_each_tensor(zeros, config, [&]<class Stored>(const TensorInfo& info, Stored& tensor) {
    if (!std::is_same_v<Stored, Weight> || !learned || learned(info)) set_to_zero(info, tensor);
  });
  return zeros;
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

Gradients::Gradients(const Config& config, std::size_t B, std::size_t T,
                     TrainingFunctions functions)
    : B_(B),
      T_(T),
      functions_(checked_functions(config, B, T, std::move(functions))),
      x_(empty(B * T, config.block.C)),
      dx_(empty(B * T, config.block.C)),
      logits_(empty(rows_at_once(B * T, config.V), config.V)),
      losses_(logits_.shape(0)),
      attention_(settings_of_all(config), B, T, functions_.attention),
      kept_(make_kept(settings_of_all(config), B * T, !functions_.network.backward)),
      forward_scratch_(settings_of_all(config), B * T),
      backward_scratch_(settings_of_all(config), B, T, functions_) {
  for (std::size_t b = 0; b < B; ++b) runs_.push_back({.sequence = b, .position = 0, .rows = T});
  for (std::size_t l = 0; l < config.L; ++l)
    backward_tables_.push_back(backward_table(attention_.table(l)));
}

std::size_t Gradients::scratch_bytes() const {
  const BlockScratch& s = forward_scratch_;
  std::size_t floats = x_.size() + dx_.size() + logits_.size();
  for (const Tensor<2>* x :
       {&s.normed, &s.q, &s.k, &s.v, &s.heads, &s.added, &s.feed_forward.gate, &s.feed_forward.up})
    floats += x->size();
  return floats * sizeof(float) + bytes(backward_scratch_);
}

void Gradients::expect_batch(const Model& model, const Batch& batch) const {
  const std::size_t N = B_ * T_;
  if (batch.B != B_ || batch.T != T_ || batch.ids.size() != N || batch.targets.size() != N)
    throw std::invalid_argument(fmt::format(
        "batch: wanted B = {}, T = {} with {} ids and targets, got B = {}, T = {} with {} and {}",
        B_, T_, N, batch.B, batch.T, batch.ids.size(), batch.targets.size()));
  const std::size_t L = model.config().L, C = model.config().block.C, V = model.config().V;
  if (L != kept_.size() || C != x_.shape(1) || V != logits_.shape(1))
    throw std::invalid_argument(
        fmt::format("model: wanted L = {}, C = {}, V = {}, got L = {}, C = {}, V = {}",
                    kept_.size(), x_.shape(1), logits_.shape(1), L, C, V));
}

static void expect_floats(const TensorInfo&, const Tensor<1>&) {}
static void expect_floats(const TensorInfo& info, const Weight& w) {
  if (w.is_packed())
    throw std::invalid_argument(full_name(info) + ": wanted floats, got packed numbers");
}
/// Throws before anything is added unless all gradients have their weights' shapes, and all weights
/// are floats.
static void expect_gradients(const Model& model, const ModelWeights& gradients) {
  const Config& config = model.config();
  if (gradients.blocks.size() != config.L)
    throw std::invalid_argument(fmt::format("gradients: wanted those of L = {} blocks, got {}",
                                            config.L, gradients.blocks.size()));
  for_each_tensor(gradients, config,
                  []<class Stored>(const TensorInfo& info, const Stored& tensor) {
                    if (!std::is_same_v<Stored, Weight> || tensor.size() > 0)
                      expect_fits(info, tensor);
                  });
  for_each_tensor(model.weights(), config,
                  [](const TensorInfo& info, const auto& tensor) { expect_floats(info, tensor); });
}

/// Leaves the last block's result in x_.
void Gradients::forward(const Model& model, const Batch& batch, const Dropout& dropout,
                        const Trace& trace) {
  const Matrix x = x_;
  for (std::size_t b = 0; b < B_; ++b)
    embed_tokens(model, std::span(batch.ids).subspan(b * T_, T_), 0, x.rows_from(b * T_, T_));
  dropout_rows(dropout, Part::embedding, 0, x);
  attention_.leave_out(dropout);
  const BlockFunctions functions = {
      .attention = std::ref(attention_),
      .network = functions_.network.forward,
      .before_sum = [this, &dropout](const Block& block, Part part, ConstMatrix x, Matrix added) {
        dropout_rows(dropout, part, block.layer(), added);
        if (functions_.sum.forward) functions_.sum.forward(block, part, x, added);
      }};
  for (std::size_t l = 0; l < model.config().L; ++l) {
    if (trace) kept_[l].x = x_;
    block_rows(x, runs_, model.block(l), functions, forward_scratch_, trace);
  }
}

/// The final norm, the head and the loss, some rows at a time. If gradients are wanted, dx_ becomes
/// the gradient of x_, the last block's result.
double Gradients::head(const Model& model, const Batch& batch, float scale,
                       ModelWeights* gradients) {
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
    matmul_bt(rows, ConstMatrix(table), logits);
    sum +=
        cross_entropy_rows(logits, std::span(batch.targets).subspan(first, count), scale, losses_);
    if (!gradients) continue;
    Weight& dtable = model.config().tied ? gradients->embedding : gradients->head;
    add_weight_gradient(logits, rows, dtable.floats());
    matmul(logits, table, Matrix(dnormed).rows_from(first, count));
  }
  if (!gradients) return sum;
  dx_.fill(0);
  add_norm_backward(x_, model.weights().final_norm, s.norm, s.eps, dnormed, dx_,
                    gradients->final_norm, row(backward_scratch_.rows));
  return sum;
}

double Gradients::loss(const Model& model, const Batch& batch) {
  expect_batch(model, batch);
  forward(model, batch, {}, {});
  return head(model, batch, 1, nullptr);
}

double Gradients::add(const Model& model, const Batch& batch, float scale, ModelWeights& gradients,
                      const Dropout& dropout) {
  expect_batch(model, batch);
  const Config& config = model.config();
  expect_gradients(model, gradients);
  forward(model, batch, dropout, keep_in(kept_));
  const double sum = head(model, batch, scale, &gradients);
  extra_loss_ = 0;
  for (std::size_t l = config.L; l-- > 0;)
    extra_loss_ += block_backward(model.block(l), kept_[l], backward_tables_[l], B_,
                                  backward_scratch_, dx_, gradients.blocks[l], dropout, functions_);
  dropout_rows(dropout, Part::embedding, 0, dx_);

  if (gradients.embedding.size() > 0)
    add_embedding_gradient(batch.ids, dx_, gradients.embedding.floats());
  if (gradients.positions.size() > 0) add_positions_gradient(T_, dx_, gradients.positions.floats());
  return sum;
}

}  // namespace t2t
