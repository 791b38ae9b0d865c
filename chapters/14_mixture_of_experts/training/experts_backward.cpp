#include "14_mixture_of_experts/training/experts_backward.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <stdexcept>

#include "07_swiglu/fast/activation_rows.hpp"
#include "13_training/backward/activation_backward.hpp"
#include "13_training/backward/linear_backward.hpp"
#include "linalg.hpp"
#include "shapes.hpp"

namespace t2t {

Routed choices_of(ConstMatrix x, const Mixture& mixture, const Balance& balance) {
  Routed routed = route(copy_of(x), mixture.router.floats(), mixture.settings, mixture.bias);
  if (balance.slack > 0)
    limit_to(capacity_of(x.rows, mixture.settings.k, mixture.E(), balance.slack), routed);
  return routed;
}

/// The rows of x of these choices: [n, C].
static Tensor<2> gathered(ConstMatrix x, std::span<const std::size_t> choices, std::size_t k) {
  Tensor<2> rows = empty(choices.size(), x.cols);
  for (std::size_t r = 0; r < choices.size(); ++r)
    std::ranges::copy(x.row(choices[r] / k), row(rows, r).begin());
  return rows;
}

/// One network: adds to its weights' gradients, and returns the gradients of the rows that it read
/// and writes those of its results' routing weights. A row whose weight is 0 was dropped: nothing
/// is learned from it.
static Tensor<2> network_backward(const Tensor<2>& read, const FeedForwardWeights& w,
                                  Activation activation, const Tensor<1>& weights, Tensor<2> dy,
                                  Tensor<1>& dweights, FeedForwardWeights& gradients) {
  const std::size_t n = read.shape(0), F = w.w_up.rows();
  Tensor<2> gate = empty(n, F), up = gate, hidden = gate, dgate = gate;
  matmul_bt(read, w.w_gate, gate), matmul_bt(read, w.w_up, up);
  gated_rows(activation, gate, up, hidden);
  const Tensor<2> result = matmul_bt(hidden, w.w_down.floats());  // [n, C]
  dweights = xt::where(xt::equal(weights, 0.0f), 0.0f, xt::sum(dy * result, {1}));
  dy *= xt::view(weights, xt::all(), xt::newaxis());  // of result
  add_weight_gradient(dy, hidden, gradients.w_down.floats());
  Tensor<2> dup = matmul(dy, w.w_down.floats());  // [n, F], of hidden, then of up
  gated_backward_rows(activation, gate, up, dup, dgate);
  add_weight_gradient(dgate, read, gradients.w_gate.floats());
  add_weight_gradient(dup, read, gradients.w_up.floats());
  return matmul(dgate, w.w_gate.floats()) + matmul(dup, w.w_up.floats());  // [n, C]
}

/// One expert: the gradients of its weights, its tokens' x, and their routing weights.
static void expert_backward(ConstMatrix x, const Mixture& mixture, std::size_t e,
                            std::span<const std::size_t> choices, const Routed& routed,
                            ConstMatrix dy, Tensor<2>& dweights, Matrix dx,
                            FeedForwardWeights& gradients) {
  const std::size_t k = mixture.settings.k;
  Tensor<1> weights = empty(choices.size()), dweights_here;
  for (std::size_t r = 0; r < choices.size(); ++r) weights(r) = routed.weights.data()[choices[r]];
  const Tensor<2> dread =
      network_backward(gathered(x, choices, k), mixture.experts[e], mixture.activation, weights,
                       gathered(dy, choices, k), dweights_here, gradients);
  for (std::size_t r = 0; r < choices.size(); ++r) {
    dweights.data()[choices[r]] = dweights_here(r);
    const Row to = dx.row(choices[r] / k);
    for (std::size_t c = 0; c < to.size(); ++c) to[c] += dread(r, c);
  }
}

/// The shared network and its gate.
static void shared_backward(ConstMatrix x, const Mixture& mixture, ConstMatrix dy, Matrix dx,
                            const MixtureGradients& gradients) {
  const SharedNetwork& shared = mixture.shared;
  const Tensor<2> read = copy_of(x);
  const Tensor<1> gates = gates_of(read, shared);  // [T]
  Tensor<1> dgates;
  const Tensor<2> dread = network_backward(read, *shared.weights, mixture.activation, gates,
                                           copy_of(dy), dgates, gradients.shared);
  for (std::size_t t = 0; t < dx.rows; ++t)
    for (std::size_t c = 0; c < dx.cols; ++c) dx.row(t)[c] += dread(t, c);
  if (!shared.gate) return;
  const Tensor<1> derivative = dgates * gates * (1 - gates);  // of the scores, through the sigmoid
  const Tensor<2> dscores = xt::view(derivative, xt::all(), xt::newaxis());  // [T, 1]
  add_weight_gradient(dscores, x, gradients.shared_gate.floats());
  add_input_gradient(dscores, shared.gate->floats(), dx);
}

double experts_backward(ConstMatrix x, const Mixture& mixture, const Routed& routed,
                        const Balance& balance, ConstMatrix dy, Matrix dx,
                        const MixtureGradients& gradients) {
  expect_shape("dy", dy, {x.rows, x.cols});
  expect_shape("dx", dx, {x.rows, x.cols});
  expect(gradients.experts.size() == mixture.E(), "experts of the gradients",
         fmt::format("E = {}", mixture.E()), gradients.experts.size());
  if (!is_gated(mixture.activation))
    throw std::invalid_argument("experts to train: wanted gated networks, got others");
  for (std::size_t t = 0; t < x.rows; ++t) std::ranges::fill(dx.row(t), 0.0f);
  Tensor<2> dweights = xt::zeros_like(routed.weights);  // [T, k]
  Assignment assignment;
  assign(routed.experts, mixture.E(), assignment);
  for (std::size_t e = 0; e < mixture.E(); ++e)
    if (assignment.count(e) > 0)
      expert_backward(
          x, mixture, e,
          std::span(assignment.choices).subspan(assignment.begin[e], assignment.count(e)), routed,
          dy, dweights, dx, gradients.experts[e]);

  if (mixture.shared.is_there()) shared_backward(x, mixture, dy, dx, gradients);

  double loss = 0;
  Tensor<2> dscores = route_backward(routed, mixture.settings, dweights);  // [T, E]
  if (balance.switch_loss > 0) {
    Tensor<2> dp = xt::zeros_like(routed.p);
    loss += balance_loss(routed, balance.switch_loss, dp);
    dscores += scores_backward(routed.p, mixture.settings.scoring, dp);
  }
  if (balance.z_loss > 0) loss += z_loss(routed, balance.z_loss, dscores);
  add_weight_gradient(dscores, x, gradients.router.floats());
  add_input_gradient(dscores, mixture.router.floats(), dx);
  return loss;
}

}  // namespace t2t
