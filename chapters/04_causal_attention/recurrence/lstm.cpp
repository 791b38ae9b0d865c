#include "04_causal_attention/recurrence/lstm.hpp"

#include <cmath>
#include <utility>

#include "linalg.hpp"
#include "shapes.hpp"

namespace t2t {

static float sigmoid(float x) { return 1 / (1 + std::exp(-x)); }

LstmCell draw_lstm_cell(std::size_t C, Random& random, float forget_bias) {
  const auto draw = [&] { return random.normal<2>({4 * C, C}, 1 / std::sqrt(float(C))); };
  LstmCell cell{draw(), draw(), xt::zeros<float>({4 * C})};
  for (std::size_t c = 0; c < C; ++c) cell.bias(C + c) = forget_bias;
  return cell;
}

LstmStates lstm(const Tensor<2>& x, const LstmCell& cell) {
  const std::size_t T = x.shape(0), C = x.shape(1);
  expect_shape("w_x", cell.w_x, {4 * C, C});
  expect_shape("w_h", cell.w_h, {4 * C, C});
  expect_shape("bias", cell.bias, {4 * C});

  LstmStates run{matmul_bt(x, cell.w_x) + cell.bias, empty(T, C), empty(T, C)};
  Tensor<1> passed = xt::zeros<float>({4 * C});  // [4C], what state t − 1 adds
  for (std::size_t t = 0; t < T; ++t) {
    if (t > 0) matvec(cell.w_h, row(std::as_const(run.states), t - 1), row(passed));
    for (std::size_t c = 0; c < C; ++c) {
      float &i = run.gates(t, c), &f = run.gates(t, C + c);
      float &g = run.gates(t, 2 * C + c), &o = run.gates(t, 3 * C + c);
      i = sigmoid(i + passed(c));
      f = sigmoid(f + passed(C + c));
      g = std::tanh(g + passed(2 * C + c));
      o = sigmoid(o + passed(3 * C + c));
      run.cells(t, c) = (t > 0 ? f * run.cells(t - 1, c) : 0) + i * g;
      run.states(t, c) = o * std::tanh(run.cells(t, c));
    }
  }
  return run;
}

Tensor<1> lstm_echo(const LstmStates& run, const LstmCell& cell, const Tensor<1>& change) {
  const std::size_t T = run.cells.shape(0), C = run.cells.shape(1);
  expect_shape("w_h", cell.w_h, {4 * C, C});
  expect_shape("change", change, {C});
  const auto length = [](const Tensor<1>& v) {
    return std::sqrt(xt::sum(xt::square(xt::cast<double>(v)))());
  };

  // The chain rule, one step at a time: the cell's change comes from the old cell through f, and
  // from the old state through all four gates.
  Tensor<1> echo = empty(T), moved_cell = change, moved_state = empty(C), passed = empty(4 * C);
  for (std::size_t t = 0; t < T; ++t) {
    if (t > 0) matvec(cell.w_h, row(std::as_const(moved_state)), row(passed));
    for (std::size_t c = 0; c < C; ++c) {
      const float i = run.gates(t, c), f = run.gates(t, C + c);
      const float g = run.gates(t, 2 * C + c), o = run.gates(t, 3 * C + c);
      const float shown = std::tanh(run.cells(t, c));
      if (t > 0)
        moved_cell(c) = f * moved_cell(c) + run.cells(t - 1, c) * f * (1 - f) * passed(C + c) +
                        g * i * (1 - i) * passed(c) + i * (1 - g * g) * passed(2 * C + c);
      moved_state(c) = o * (1 - shown * shown) * moved_cell(c);
      if (t > 0) moved_state(c) += shown * o * (1 - o) * passed(3 * C + c);
    }
    echo(t) = float(length(moved_cell) / length(change));
  }
  return echo;
}

}  // namespace t2t
