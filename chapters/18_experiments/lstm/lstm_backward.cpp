#include "18_experiments/lstm/lstm_backward.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "13_training/backward/linear_backward.hpp"
#include "linalg.hpp"
#include "shapes.hpp"

namespace t2t {

static void expect_shapes(const Tensor<2>& x, const LstmCell& cell, const LstmStates& run,
                          const Tensor<2>& dstates, const LstmCell& gradients) {
  const std::size_t T = x.shape(0), C = x.shape(1);
  for (const LstmCell* weights : {&cell, &gradients}) {
    expect_shape("w_x", weights->w_x, {4 * C, C});
    expect_shape("w_h", weights->w_h, {4 * C, C});
    expect_shape("bias", weights->bias, {4 * C});
  }
  expect_shape("gates", run.gates, {T, 4 * C});
  expect_shape("cells", run.cells, {T, C});
  expect_shape("states", run.states, {T, C});
  expect_shape("dstates", dstates, {T, C});
}

/// Turns the gradients of token t's state and cell into the gradients of its sums, dsums. dcell
/// becomes the gradient of the previous cell.
static void gates_backward(const LstmStates& run, std::size_t t, const Tensor<1>& dstate,
                           Tensor<1>& dcell, Row dsums) {
  const std::size_t C = run.cells.shape(1);
  for (std::size_t c = 0; c < C; ++c) {
    const float i = run.gates(t, c), f = run.gates(t, C + c);
    const float g = run.gates(t, 2 * C + c), o = run.gates(t, 3 * C + c);
    const float shown = std::tanh(run.cells(t, c)), before = t > 0 ? run.cells(t - 1, c) : 0;
    dcell(c) += dstate(c) * o * (1 - shown * shown);
    dsums[c] = dcell(c) * g * i * (1 - i);
    dsums[C + c] = dcell(c) * before * f * (1 - f);
    dsums[2 * C + c] = dcell(c) * i * (1 - g * g);
    dsums[3 * C + c] = dstate(c) * shown * o * (1 - o);
    dcell(c) *= f;
  }
}

Tensor<2> lstm_backward(const Tensor<2>& x, const LstmCell& cell, const LstmStates& run,
                        const Tensor<2>& dstates, LstmCell& gradients) {
  expect_shapes(x, cell, run, dstates, gradients);
  const std::size_t T = x.shape(0), C = x.shape(1);
  const Tensor<2> to_state = xt::transpose(cell.w_h);  // [C, 4C]
  Tensor<2> dsums = empty(T, 4 * C), before = xt::zeros<float>({T, C});
  Tensor<1> dcell = xt::zeros<float>({C}), dstate = empty(C), passed = xt::zeros<float>({C});
  for (std::size_t t = T; t-- > 0;) {
    dstate = xt::row(dstates, t) + passed;
    gates_backward(run, t, dstate, dcell, row(dsums, t));
    matvec(to_state, row(std::as_const(dsums), t), row(passed));
    if (t > 0) std::ranges::copy(row(run.states, t - 1), row(before, t).begin());
  }

  // The weights serve all tokens: their gradients are sums over them.
  add_weight_gradient(dsums, x, gradients.w_x);
  add_weight_gradient(dsums, before, gradients.w_h);
  add_bias_gradient(dsums, gradients.bias);
  return matmul(dsums, cell.w_x);
}

}  // namespace t2t
