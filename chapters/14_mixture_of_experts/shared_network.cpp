#include "14_mixture_of_experts/shared_network.hpp"

#include <cmath>

#include "07_swiglu/fast/feed_forward_rows.hpp"
#include "linalg.hpp"
#include "rows.hpp"
#include "shapes.hpp"

namespace t2t {

Tensor<1> gates_of(const Tensor<2>& x, const SharedNetwork& shared) {
  if (!shared.gate) return xt::ones<float>({x.shape(0)});
  expect_shape("shared_gate", *shared.gate, {1, x.shape(1)});
  const Tensor<2> scores = matmul_bt(x, shared.gate->floats());  // [T, 1]
  return 1 / (1 + xt::exp(-xt::col(scores, 0)));
}

Tensor<2> shared_network(const Tensor<2>& x, const SharedNetwork& shared, Activation activation) {
  if (!shared.is_there()) return xt::zeros_like(x);
  const Tensor<1> gates = gates_of(x, shared);
  return xt::view(gates, xt::all(), xt::newaxis()) * feed_forward(x, *shared.weights, activation);
}

void shared_network_rows(ConstMatrix x, const SharedNetwork& shared, Activation activation,
                         FeedForwardScratch& scratch, Matrix gates, Matrix y) {
  expect_shape("gates", gates, {x.rows, 1});
  if (shared.gate) expect_shape("shared_gate", *shared.gate, {1, x.cols});
  feed_forward_rows(x, *shared.weights, activation, scratch, y);
  if (!shared.gate) return;
  matmul_bt(x, *shared.gate, gates);
  for_each_row(x.rows, x.cols, [&](std::size_t t) {
    const float gate = 1 / (1 + std::exp(-gates.row(t)[0]));
    for (float& number : y.row(t)) number *= gate;
  });
}

}  // namespace t2t
