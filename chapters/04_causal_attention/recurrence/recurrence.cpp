#include "04_causal_attention/recurrence/recurrence.hpp"

#include <cmath>
#include <utility>

#include "lanes.hpp"
#include "linalg.hpp"
#include "shapes.hpp"

namespace t2t {

RecurrentCell draw_recurrent_cell(std::size_t C, Random& random, float scale) {
  const float deviation = 1 / std::sqrt(float(C));
  const Tensor<2> w_x = random.normal<2>({C, C}, deviation);          // [C, C]
  const Tensor<2> w_h = random.normal<2>({C, C}, scale * deviation);  // [C, C]
  return {w_x, w_h, xt::zeros<float>({C})};
}

Tensor<2> recurrence(const Tensor<2>& x, const RecurrentCell& cell) {
  const std::size_t T = x.shape(0), C = x.shape(1);
  expect_shape("w_x", cell.w_x, {C, C});
  expect_shape("w_h", cell.w_h, {C, C});
  expect_shape("bias", cell.bias, {C});

  // The inputs' share is one product for all tokens …
  Tensor<2> states = matmul_bt(x, cell.w_x) + cell.bias;  // [T, C]

  // … but step t needs the state of step t − 1.
  const auto join = [](Lanes input, Lanes passed) { return xsimd::tanh(input + passed); };
  Tensor<1> passed = xt::zeros<float>({C});  // [C]
  for (std::size_t t = 0; t < T; ++t) {
    if (t > 0) matvec(cell.w_h, row(std::as_const(states), t - 1), row(passed));
    map_row(row(states, t), join, row(states, t), row(passed));
  }
  return states;
}

Tensor<1> recurrence_echo(const Tensor<2>& states, const RecurrentCell& cell,
                          const Tensor<1>& change) {
  const std::size_t T = states.shape(0), C = states.shape(1);
  expect_shape("w_h", cell.w_h, {C, C});
  expect_shape("change", change, {C});
  const auto length = [](const Tensor<1>& v) {
    return std::sqrt(xt::sum(xt::square(xt::cast<double>(v)))());
  };

  // Each step multiplies by w_h and by tanh's derivative, 1 − tanh².
  Tensor<1> echo = xt::ones<float>({T}), moved = change, passed = empty(C);  // [T], [C], [C]
  for (std::size_t t = 1; t < T; ++t) {
    matvec(cell.w_h, row(std::as_const(moved)), row(passed));
    for (std::size_t c = 0; c < C; ++c) moved(c) = (1 - states(t, c) * states(t, c)) * passed(c);
    echo(t) = float(length(moved) / length(change));
  }
  return echo;
}

}  // namespace t2t
