#include "24_delta_rule/learned/recall_model.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "01_embedding/embedding.hpp"
#include "13_training/backward/cross_entropy.hpp"
#include "13_training/backward/embedding_backward.hpp"
#include "13_training/backward/linear_backward.hpp"
#include "13_training/backward/norm_backward.hpp"
#include "linalg.hpp"

namespace t2t {

static constexpr float eps = 1e-6f;  // of the norms

RecallModel draw_recall_model(const DeltaLayerSettings& settings, std::size_t V,
                              const std::vector<Mixer>& mixers, Random& random) {
  expect_delta_layer(settings);
  const std::size_t C = settings.C;
  const NormWeights norm{xt::ones<float>({C}), {}};
  RecallModel model{settings,
                    random.normal<2>({V, C}, 0.3f),
                    {},
                    norm,
                    random.normal<2>({V, C}, 1 / std::sqrt(float(C)))};
  for (const Mixer mixer : mixers) {
    model.layers.push_back({mixer, norm, draw_delta_weights(settings, random)});
    // Decays begin slow: a state that fades within a few tokens has nothing to learn from.
    Tensor<1>& a = model.layers.back().mix.a;
    a = random.uniform<1>({settings.H}, -7, -4);
  }
  return model;
}

std::vector<ListedTensor> tensors_of(RecallModel& model) {
  std::vector<ListedTensor> list;
  const auto matrix = [&](const char* name, Role role, std::optional<std::size_t> l, Tensor<2>& x) {
    list.push_back({{name, x.shape(0), x.shape(1), role, l}, Row(x.data(), x.size())});
  };
  const auto vector = [&](const char* name, Role role, std::optional<std::size_t> l, Tensor<1>& x) {
    list.push_back({{name, x.size(), 1, role, l}, row(x)});
  };
  matrix("embedding", Role::embedding, {}, model.embedding);
  for (std::size_t l = 0; l < model.layers.size(); ++l) {
    auto& [mixer, norm, mix] = model.layers[l];
    vector("norm.gain", Role::gain, l, norm.gain);
    matrix("w_qkv", Role::matrix, l, mix.w_qkv);
    matrix("conv", Role::matrix, l, mix.conv);
    matrix("w_beta", Role::matrix, l, mix.w_beta);
    matrix("w_gate", Role::matrix, l, mix.w_gate);
    vector("a", Role::bias, l, mix.a);
    vector("b", Role::bias, l, mix.b);
    matrix("w_z", Role::matrix, l, mix.w_z);
    vector("gain", Role::gain, l, mix.gain);
    matrix("w_o", Role::into_stream, l, mix.w_o);
  }
  vector("final_norm.gain", Role::gain, {}, model.final_norm.gain);
  matrix("head", Role::matrix, {}, model.head);
  return list;
}

RecallModel zeros_like(const RecallModel& model) {
  RecallModel zeros = model;
  for (const ListedTensor& tensor : tensors_of(zeros)) std::ranges::fill(tensor.numbers, 0.0f);
  return zeros;
}

/// What a forward pass keeps.
struct RecallPass {
  std::vector<Tensor<2>> x, normed;    // [L + 1] and [L] of [T, C]
  std::vector<DeltaLayerPass> layers;  // [L]
  std::vector<std::size_t> asked;      // the tokens that have a target
  Tensor<2> answers, normed_answers;   // [asked, C], of the last x
  Tensor<2> logits;                    // [asked, V]
};

static RecallPass forward(const RecallModel& model, const PairsText& text) {
  RecallPass pass;
  pass.x.push_back(empty(text.ids.size(), model.settings.C));
  embed_rows(text.ids, model.embedding, pass.x[0]);
  for (const RecallLayer& layer : model.layers) {
    pass.normed.push_back(norm(pass.x.back(), layer.norm, Norm::rms, eps));
    pass.layers.emplace_back();
    const Tensor<2> added =
        delta_layer_pass(pass.normed.back(), layer.mix, model.settings,
                         head_rule(layer.mixer, model.settings), pass.layers.back());
    pass.x.push_back(pass.x.back() + added);
  }
  for (std::size_t t = 0; t < text.targets.size(); ++t)
    if (text.targets[t] != not_learned) pass.asked.push_back(t);
  pass.answers = empty(pass.asked.size(), model.settings.C);
  for (std::size_t i = 0; i < pass.asked.size(); ++i)
    std::ranges::copy(row(pass.x.back(), pass.asked[i]), row(pass.answers, i).begin());
  pass.normed_answers = norm(pass.answers, model.final_norm, Norm::rms, eps);
  pass.logits = matmul_bt(pass.normed_answers, model.head);
  return pass;
}

Tensor<2> recall_logits(const RecallModel& model, const PairsText& text) {
  return forward(model, text).logits;
}

/// Back through a norm: adds its gain's gradient, and returns that of x.
static Tensor<2> back_through(const Tensor<2>& x, const NormWeights& weights, const Tensor<2>& dy,
                              NormWeights& gradients) {
  const NormGradients d = norm_backward(x, weights, Norm::rms, eps, dy);
  for (std::size_t c = 0; c < gradients.gain.size(); ++c) gradients.gain(c) += d.weights.gain(c);
  return d.x;
}

double recall_loss(const RecallModel& model, const PairsText& text, float scale,
                   RecallModel& gradients) {
  RecallPass pass = forward(model, text);
  std::vector<int> targets;
  for (const std::size_t t : pass.asked) targets.push_back(text.targets[t]);
  std::vector<double> losses(targets.size());
  const double sum = cross_entropy_rows(pass.logits, targets, scale, losses);

  // The logits are now their gradients. Only tokens with a target get one from the head.
  add_weight_gradient(pass.logits, pass.normed_answers, gradients.head);
  const Tensor<2> danswers =  // [asked, C]
      back_through(pass.answers, model.final_norm, matmul(pass.logits, model.head),
                   gradients.final_norm);
  Tensor<2> dx = xt::zeros_like(pass.x[0]);  // [T, C]
  for (std::size_t i = 0; i < pass.asked.size(); ++i)
    std::ranges::copy(row(danswers, i), row(dx, pass.asked[i]).begin());

  for (std::size_t l = model.layers.size(); l-- > 0;) {
    const RecallLayer& layer = model.layers[l];
    const Tensor<2> dnormed = delta_layer_backward(pass.normed[l], layer.mix, model.settings,
                                                   head_rule(layer.mixer, model.settings),
                                                   pass.layers[l], dx, gradients.layers[l].mix);
    dx += back_through(pass.x[l], layer.norm, dnormed, gradients.layers[l].norm);
  }
  add_embedding_gradient(text.ids, dx, gradients.embedding);
  return sum;
}

}  // namespace t2t
