#include "13_training/backward/block_backward.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <span>
#include <stdexcept>

#include "03_rope/fast/rope_rows.hpp"
#include "07_swiglu/fast/activation_rows.hpp"
#include "13_training/attention/attention_backward.hpp"
#include "13_training/attention/weight_dropout.hpp"
#include "13_training/backward/activation_backward.hpp"
#include "13_training/backward/linear_backward.hpp"
#include "13_training/backward/norm_backward_rows.hpp"
#include "linalg.hpp"
#include "rows.hpp"
#include "shapes.hpp"

namespace t2t {

void expect_trained(const std::vector<Difference>& differences,
                    const TrainingFunctions& functions) {
  std::vector<Difference> left = differences;
  if (functions.network.backward)
    for (const Difference brought :
         {Difference::experts, Difference::unnormalized_experts, Difference::shared_network})
      std::erase(left, brought);
  expect_only(left,
              {Difference::layer_norm, Difference::norms_after, Difference::head_norms,
               Difference::other_activation, Difference::biases_of_qkv, Difference::biases_of_all,
               Difference::window, Difference::no_rope, Difference::halves, Difference::scaled_rope,
               Difference::score_scale, Difference::score_cap, Difference::learned_positions,
               Difference::tied, Difference::layers_differ},
              "the model to train");
}

static const BlockSettings& trained(std::span<const BlockSettings> layers,
                                    const TrainingFunctions& functions) {
  expect(!layers.empty(), "layers", "at least 1", 0);
  const auto sizes = [](const BlockSettings& s) { return std::array{s.C, s.H, s.G, s.D, s.F}; };
  for (const BlockSettings& s : layers) {
    expect_settings(s);
    expect_trained(differences_from_llama(s), functions);
    if (sizes(s) != sizes(layers[0]))
      throw std::invalid_argument("layers: wanted the same C, H, G, D and F in all");
  }
  return layers[0];
}

BackwardScratch::BackwardScratch(std::span<const BlockSettings> layers, std::size_t B,
                                 std::size_t T, const TrainingFunctions& functions)
    : attention(trained(layers, functions).H, layers[0].G, layers[0].D, T) {
  const BlockSettings& s = layers[0];
  const std::size_t N = B * T;
  normed = empty(N, s.C);
  dnormed = empty(N, s.C);
  dropped = empty(N, s.C);
  dq = empty(N, s.H * s.D);
  dk = empty(N, s.G * s.D);
  dv = empty(N, s.G * s.D);
  dheads = empty(N, s.H * s.D);
  if (std::ranges::any_of(layers, &BlockSettings::head_norms)) before_norm = empty(N, s.H * s.D);
  if (!functions.network.backward) hidden = empty(N, s.F), dhidden = empty(N, s.F);
  rows = empty(2 * N);
}

std::size_t bytes(const BackwardScratch& s) {
  std::size_t floats = s.rows.size();
  for (const Tensor<2>* x : {&s.normed, &s.dnormed, &s.dropped, &s.dq, &s.dk, &s.dv, &s.dheads,
                             &s.before_norm, &s.hidden, &s.dhidden})
    floats += x->size();
  return floats * sizeof(float) + s.attention.bytes();
}

/// Adds to the gradients of a projection's weights.
static void add_gradients(ConstMatrix x, ConstMatrix dy, Weight& dw, Tensor<1>& db) {
  add_weight_gradient(dy, x, dw.floats());
  add_bias_gradient(dy, db);
}

/// Writes the gradient of the network's input, x, to dx.
static void network_backward(ConstMatrix x, const Block& block, const KeptBlock& kept,
                             ConstMatrix dy, BackwardScratch& scratch, Matrix dx,
                             FeedForwardWeights& gradients) {
  const FeedForwardWeights& weights = block.weights().feed_forward;
  const Activation activation = block.settings().activation;
  const bool gated = is_gated(activation);
  if (gated)
    gated_rows(activation, kept.gate, kept.up, scratch.hidden);
  else
    activate_rows(activation, kept.up, scratch.hidden);
  add_gradients(scratch.hidden, dy, gradients.w_down, gradients.b_down);
  matmul(dy, weights.w_down.floats(), scratch.dhidden);

  // The activation turns dhidden into dup, and dgate takes the place of hidden.
  const Matrix dup = scratch.dhidden, dgate = scratch.hidden;
  if (gated)
    gated_backward_rows(activation, kept.gate, kept.up, dup, dgate);
  else
    activate_backward_rows(activation, kept.up, dup);
  add_gradients(x, dup, gradients.w_up, gradients.b_up);
  matmul(dup, weights.w_up.floats(), dx);
  if (!gated) return;
  add_weight_gradient(dgate, x, gradients.w_gate.floats());
  add_input_gradient(dgate, weights.w_gate.floats(), dx);
}

/// The gradient of q, or of k, before the norms of its heads, which replaces the one after them.
/// The norms' input is recomputed from x.
static void head_norms_backward(ConstMatrix x, const Weight& w, const Tensor<1>& bias,
                                const NormWeights& norm, const BlockSettings& s,
                                BackwardScratch& scratch, Matrix dq, NormWeights& gradients) {
  const Matrix before = Matrix(scratch.before_norm).cols_from(0, dq.cols);  // [N, H·D]
  const Matrix dnormed = Matrix(scratch.dheads).cols_from(0, dq.cols);      // [N, H·D]
  matmul_bt(x, w, before);
  add_bias(bias, before);
  for_each_row(dq.rows, dq.cols, [&](std::size_t t) {
    std::ranges::copy(dq.row(t), dnormed.row(t).begin());
    std::ranges::fill(dq.row(t), 0.0f);
  });
  for (std::size_t h = 0; h < dq.cols / s.D; ++h)
    add_norm_backward(before.head(h, s.D), norm, s.norm, s.eps, dnormed.head(h, s.D),
                      dq.head(h, s.D), gradients, row(scratch.rows));
}

/// One block on the way back: block_backward's arguments without the gradient that goes through it.
struct BlockOnTheWayBack {
  const Block& block;
  const KeptBlock& kept;
  const RopeTable& backward_table;
  std::size_t B;
  BackwardScratch& scratch;
  BlockWeights& gradients;
  const Dropout& dropout;
  const TrainingFunctions& functions;
};

/// Writes the gradient of attention's input, x, to dx.
static void attention_part_backward(ConstMatrix x, const BlockOnTheWayBack& one, ConstMatrix dy,
                                    Matrix dx) {
  const auto& [block, kept, backward_table, B, scratch, gradients, dropout, functions] = one;
  const AttentionChange& change = functions.attention;
  const BlockSettings& s = block.settings();
  const BlockWeights& weights = block.weights();
  add_gradients(kept.heads, dy, gradients.w_o, gradients.b_o);
  matmul(dy, weights.w_o.floats(), scratch.dheads);

  const Matrix dq = scratch.dq, dk = scratch.dk, dv = scratch.dv;
  const AttentionPass pass{kept.q, kept.k, kept.v, kept.heads, scratch.dheads};
  const ScoreRule rule = change.rule_of(s);
  const std::size_t T = x.rows / B;
  if (change.drops_weights && dropout.p > 0)
    for (std::size_t b = 0; b < B; ++b)
      dropped_attention_backward(
          {dropout, block.layer(), b, s.H, s.G, rule}, of_sequence(pass, b * T, T),
          {dq.rows_from(b * T, T), dk.rows_from(b * T, T), dv.rows_from(b * T, T)});
  else
    flash_backward(pass, B, s.H, s.G, rule, {dq, dk, dv}, scratch.attention);
  if (change.backward) change.backward(s, dq, dk);
  for (std::size_t b = 0; s.uses_rope && b < B; ++b) {
    rope_rows(dq.rows_from(b * T, T), s.D, backward_table, 0, s.pairing);
    rope_rows(dk.rows_from(b * T, T), s.D, backward_table, 0, s.pairing);
  }

  if (s.head_norms) {
    head_norms_backward(x, weights.w_q, weights.b_q, weights.q_norm, s, scratch, dq,
                        gradients.q_norm);
    head_norms_backward(x, weights.w_k, weights.b_k, weights.k_norm, s, scratch, dk,
                        gradients.k_norm);
  }

  // q, k and v are made of the same x, whose gradient is the sum of what they give.
  add_gradients(x, dq, gradients.w_q, gradients.b_q);
  add_gradients(x, dk, gradients.w_k, gradients.b_k);
  add_gradients(x, dv, gradients.w_v, gradients.b_v);
  matmul(dq, weights.w_q.floats(), dx);
  add_input_gradient(dk, weights.w_k.floats(), dx);
  add_input_gradient(dv, weights.w_v.floats(), dx);
}

double block_backward(const Block& block, const KeptBlock& kept, const RopeTable& backward_table,
                      std::size_t B, BackwardScratch& scratch, Matrix dx, BlockWeights& gradients,
                      const Dropout& dropout, const TrainingFunctions& functions) {
  const BlockSettings& s = block.settings();
  const BlockWeights& weights = block.weights();
  const bool norm_before = s.norm_place == NormPlace::before;
  const Matrix dpart = scratch.dnormed;  // [N, C], the gradient of what a part read
  const auto add_norm = [&](const Tensor<2>& x, const NormWeights& norm, ConstMatrix dy, Matrix to,
                            NormWeights& of_norm) {
    add_norm_backward(x, norm, s.norm, s.eps, dy, to, of_norm, row(scratch.rows));
  };
  // In post-norm the gradient of a sum comes through the norm that follows it.
  const auto through_norm = [&](const Tensor<2>& sum, const NormWeights& norm,
                                NormWeights& of_norm) {
    Tensor<2>& dnormed = scratch.normed;  // which holds no norm's result at this point
    std::ranges::copy(std::span(dx.data, dx.rows * dx.cols), dnormed.begin());
    std::ranges::fill(std::span(dx.data, dx.rows * dx.cols), 0.0f);
    add_norm(sum, norm, dnormed, dx, of_norm);
  };
  // A sum hands dx to the part that was added. The caller's function and dropout, if there are any,
  // change it on the way.
  const auto dadded = [&](Part part) -> ConstMatrix {
    if (dropout.p == 0 && !functions.sum.backward) return dx;
    std::ranges::copy(std::span(dx.data, dx.rows * dx.cols), scratch.dropped.begin());
    if (functions.sum.backward) functions.sum.backward(block, part, scratch.dropped, dx);
    dropout_rows(dropout, part, block.layer(), scratch.dropped);
    return scratch.dropped;
  };

  // The network read norm(x₁), in post-norm x₁, which is attention's norm of the sum.
  const NormWeights& of_x1 = norm_before ? weights.feed_forward_norm : weights.attention_norm;
  if (!norm_before)
    through_norm(kept.x_plus_feed_forward, weights.feed_forward_norm, gradients.feed_forward_norm);
  norm_rows(kept.x_plus_attention, of_x1, s.norm, s.eps, scratch.normed);
  const ConstMatrix dnetwork = dadded(Part::feed_forward);
  double loss = 0;
  if (functions.network.backward)
    loss = functions.network.backward({block, scratch.normed, dnetwork, dpart, gradients});
  else
    network_backward(scratch.normed, block, kept, dnetwork, scratch, dpart, gradients.feed_forward);
  if (functions.sum_terms) functions.sum_terms(dpart);
  if (norm_before)
    add_norm(kept.x_plus_attention, weights.feed_forward_norm, dpart, dx,
             gradients.feed_forward_norm);
  else
    add_rows(dpart, dx);

  // Attention read norm(x), in post-norm x.
  if (!norm_before)
    through_norm(kept.x_plus_attention, weights.attention_norm, gradients.attention_norm);
  if (norm_before) norm_rows(kept.x, weights.attention_norm, s.norm, s.eps, scratch.normed);
  attention_part_backward(norm_before ? scratch.normed : kept.x,
                          {block, kept, backward_table, B, scratch, gradients, dropout, functions},
                          dadded(Part::attention), dpart);
  if (functions.sum_terms) functions.sum_terms(dpart);
  if (norm_before)
    add_norm(kept.x, weights.attention_norm, dpart, dx, gradients.attention_norm);
  else
    add_rows(dpart, dx);
  return loss;
}

}  // namespace t2t
