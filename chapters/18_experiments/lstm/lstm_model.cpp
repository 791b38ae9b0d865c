#include "18_experiments/lstm/lstm_model.hpp"

#include <optional>
#include <utility>

#include "01_embedding/embedding.hpp"
#include "13_training/backward/cross_entropy.hpp"
#include "13_training/backward/embedding_backward.hpp"
#include "13_training/backward/linear_backward.hpp"
#include "18_experiments/lstm/lstm_backward.hpp"
#include "linalg.hpp"
#include "shapes.hpp"

namespace t2t {

LstmModel draw_lstm_model(std::size_t V, std::size_t C, std::size_t L, Random& random) {
  LstmModel model{random.normal<2>({V, C}, 0.1f), {}};
  for (std::size_t l = 0; l < L; ++l) model.layers.push_back(draw_lstm_cell(C, random, 1));
  return model;
}

/// Calls f(info, tensor) for each tensor.
template <class Model, class F>
static void for_each_tensor(Model& model, F f) {
  const auto matrix = [&](const char* name, Role role, std::optional<std::size_t> layer, auto& x) {
    f(TensorInfo{name, x.shape(0), x.shape(1), role, layer}, x);
  };
  matrix("embedding", Role::embedding, {}, model.embedding);
  for (std::size_t l = 0; l < model.layers.size(); ++l) {
    auto& layer = model.layers[l];
    matrix("w_x", Role::matrix, l, layer.w_x);
    matrix("w_h", Role::matrix, l, layer.w_h);
    f(TensorInfo{"bias", layer.bias.size(), 1, Role::bias, l}, layer.bias);
  }
}

std::vector<ListedTensor> tensors_of(LstmModel& model) {
  std::vector<ListedTensor> list;
  for_each_tensor(model, [&](const TensorInfo& info, auto& x) {
    list.push_back({info, Row(x.data(), x.size())});
  });
  return list;
}

std::size_t parameter_count(const LstmModel& model) {
  std::size_t count = 0;
  for_each_tensor(model, [&](const TensorInfo& info, const auto&) { count += info.size(); });
  return count;
}

static LstmModel zeros_like(const LstmModel& model) {
  LstmModel zeros = model;
  for_each_tensor(zeros, [](const TensorInfo&, auto& x) { x.fill(0); });
  return zeros;
}

/// One sequence of a batch.
static double text_loss(const LstmModel& model, std::span<const int> ids,
                        std::span<const int> targets, float scale, LstmModel* gradients) {
  std::vector<Tensor<2>> x = {
      empty(ids.size(), model.embedding.shape(1))};  // what each layer reads
  embed_rows(ids, model.embedding, x[0]);
  std::vector<LstmStates> runs;
  for (const LstmCell& layer : model.layers) {
    runs.push_back(lstm(x.back(), layer));
    x.push_back(runs.back().states);
  }
  Tensor<2> logits = unembed(x.back(), model.embedding);  // [T, V]
  std::vector<double> losses(ids.size());
  const double sum = cross_entropy_rows(logits, targets, scale, losses);
  if (!gradients) return sum;

  // Head and embedding share a table, so both add to its gradient.
  add_weight_gradient(logits, x.back(), gradients->embedding);
  Tensor<2> dx = matmul(logits, model.embedding);
  for (std::size_t l = model.layers.size(); l-- > 0;)
    dx = lstm_backward(x[l], model.layers[l], runs[l], dx, gradients->layers[l]);
  add_embedding_gradient(ids, dx, gradients->embedding);
  return sum;
}

double lstm_loss(const LstmModel& model, const Batch& batch, float scale, LstmModel* gradients) {
  double sum = 0;
  for (std::size_t b = 0; b < batch.B; ++b) {
    const auto of_text = [&](const std::vector<int>& all) {
      return std::span(all).subspan(b * batch.T, batch.T);
    };
    sum += text_loss(model, of_text(batch.ids), of_text(batch.targets), scale, gradients);
  }
  return sum;
}

LstmTrainer::LstmTrainer(LstmModel model, const TrainingOptions& options, std::span<const int> ids)
    : model_(std::move(model)),
      gradients_(zeros_like(model_)),
      windows_(ids, options.T, options.seed),
      batch_(make_batch(options.B, options.T)),
      optimizer_({options.schedule, options.adamw, options.clip}, tensors_of(model_),
                 tensors_of(gradients_)) {}

StepReport LstmTrainer::step() {
  const std::size_t tokens = batch_.ids.size();
  windows_.fill(batch_, std::uint64_t(optimizer_.steps_done()) * batch_.B);
  optimizer_.begin_step();
  const double sum = lstm_loss(model_, batch_, 1 / float(tokens), &gradients_);
  return optimizer_.end_step(sum / double(tokens));
}

double LstmTrainer::loss_of(std::span<const int> ids) {
  double sum = 0;
  std::size_t learned = 0;
  for (std::size_t first = 0; fill_in_order(batch_, ids, first); first += batch_.ids.size()) {
    sum += lstm_loss(model_, batch_);
    learned += count_learned(batch_.targets);
  }
  expect(learned > 0, "ids, a text to measure", "at least 2 tokens", ids.size());
  return sum / double(learned);
}

}  // namespace t2t
