#include "13_training/backward/model_backward.hpp"

#include <fmt/core.h>

#include <array>
#include <stdexcept>
#include <type_traits>

#include "shapes.hpp"

namespace t2t {

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

Gradients::Gradients(const Config& config, std::size_t B, std::size_t T,
                     TrainingFunctions functions)
    : B_(B),
      T_(T),
      config_(config),
      passes_(config, B, T, functions),
      kept_(make_kept(settings_of_all(config), B * T, !functions.network.backward)) {}

void Gradients::expect_model(const Model& model) const {
  const auto sizes = [](const Config& of) { return std::array{of.L, of.block.C, of.V}; };
  const auto [L, C, V] = sizes(model.config());
  if (sizes(model.config()) != sizes(config_))
    throw std::invalid_argument(
        fmt::format("model: wanted L = {}, C = {}, V = {}, got L = {}, C = {}, V = {}", config_.L,
                    config_.block.C, config_.V, L, C, V));
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

void Gradients::forward(const Model& model, const Batch& batch, bool keep, const Dropout& dropout) {
  passes_.embed(model, batch, dropout);
  for (std::size_t l = 0; l < config_.L; ++l)
    passes_.forward(model.block(l), keep ? &kept_[l] : nullptr, dropout);
}

double Gradients::loss(const Model& model, const Batch& batch) {
  expect_batch(batch, B_, T_);
  expect_model(model);
  forward(model, batch, false, {});
  return passes_.head(model, batch, 1, nullptr);
}

double Gradients::add(const Model& model, const Batch& batch, float scale, ModelWeights& gradients,
                      const Dropout& dropout) {
  expect_batch(batch, B_, T_);
  expect_model(model);
  expect_gradients(model, gradients);
  forward(model, batch, true, dropout);
  const double sum = passes_.head(model, batch, scale, &gradients);
  extra_loss_ = 0;
  for (std::size_t l = config_.L; l-- > 0;)
    extra_loss_ += passes_.backward(model.block(l), kept_[l], gradients.blocks[l], dropout);
  passes_.embedding_backward(batch, gradients, dropout);
  return sum;
}

}  // namespace t2t
