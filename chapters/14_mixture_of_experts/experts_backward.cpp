#include "14_mixture_of_experts/experts_backward.hpp"

#include <algorithm>
#include <stdexcept>

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

/// One expert: the gradients of its weights, of its tokens' x, and of what they count.
static void expert_backward(ConstMatrix x, const Mixture& mixture, std::size_t e,
                            std::span<const std::size_t> choices, const Routed& routed,
                            ConstMatrix dy, Tensor<2>& dweights, Matrix dx,
                            FeedForwardWeights& gradients) {
  const FeedForwardWeights& w = mixture.experts[e];
  const std::size_t n = choices.size(), k = mixture.settings.k, F = w.w_up.rows();
  const Tensor<2> read = gathered(x, choices, k);  // [n, C]
  Tensor<2> dresult = gathered(dy, choices, k);    // [n, C]
  Tensor<2> gate = empty(n, F), up = gate, hidden = gate, dgate = gate;
  matmul_bt(read, w.w_gate, gate), matmul_bt(read, w.w_up, up);
  gated_rows(mixture.activation, gate, up, hidden);
  const Tensor<2> result = matmul_bt(hidden, w.w_down.floats());  // [n, C]
  for (std::size_t r = 0; r < n; ++r) {
    const float weight = routed.weights.data()[choices[r]];
    // A choice that was dropped counts 0, whatever the router says.
    dweights.data()[choices[r]] =
        weight == 0 ? 0 : xt::sum(xt::row(dresult, long(r)) * xt::row(result, long(r)))();
    for (float& number : row(dresult, r)) number *= weight;
  }
  add_weight_gradient(dresult, hidden, gradients.w_down.floats());
  Tensor<2> dup = matmul(dresult, w.w_down.floats());  // [n, F], of hidden, then of up
  gated_backward_rows(mixture.activation, gate, up, dup, dgate);
  add_weight_gradient(dgate, read, gradients.w_gate.floats());
  add_weight_gradient(dup, read, gradients.w_up.floats());
  const Tensor<2> dread = matmul(dgate, w.w_gate.floats()) + matmul(dup, w.w_up.floats());
  for (std::size_t r = 0; r < n; ++r) {
    const Row to = dx.row(choices[r] / k);
    for (std::size_t c = 0; c < to.size(); ++c) to[c] += dread(r, c);
  }
}

double experts_backward(ConstMatrix x, const Mixture& mixture, const Routed& routed,
                        const Balance& balance, ConstMatrix dy, Matrix dx,
                        const MixtureGradients& gradients) {
  expect_shape("dy", dy, {x.rows, x.cols});
  expect_shape("dx", dx, {x.rows, x.cols});
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
