// What must be true of what attention replaced: the recurrent cell and the LSTM.
#include "04_causal_attention/recurrence/recurrence.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <stdexcept>
#include <string>

#include "04_causal_attention/recurrence/lstm.hpp"
#include "files/npy.hpp"
#include "support/all_close.hpp"
#include "support/refuses.hpp"

namespace t2t::recurrence_test {

static constexpr double u = 0x1p-24;  // half a unit in the last place of 1: one rounding

TEST_CASE("the recurrent cell by hand, and its echo is its derivative") {
  const RecurrentCell cell{{{0.5f}}, {{2}}, {0.25f}};
  const Tensor<2> states = recurrence({{1}, {-1}}, cell);
  const double first = std::tanh(0.75), second = std::tanh(-0.25 + 2 * first);
  CHECK(all_close(states, {{float(first)}, {float(second)}}, 8 * u));
  const Tensor<1> echo = recurrence_echo(states, cell, {3});
  CHECK(all_close(echo, {1, float(2 * (1 - second * second))}, 16 * u));
  Tensor<1> of_one_state;
  REQUIRE_NOTHROW(of_one_state = recurrence_echo({{0.5f}}, cell, {3}));
  CHECK(all_close(of_one_state, {1}, 0));
}

TEST_CASE("without inputs the states stay 0, and the echo is the scale, once for each step") {
  for (const float scale : {0.5f, 2.f}) {
    const RecurrentCell cell{{{1}}, {{scale}}, {0}};
    const Tensor<2> states = recurrence(xt::zeros<float>({5, 1}), cell);
    const Tensor<1> echo = recurrence_echo(states, cell, {1});
    CHECK(echo(4) == scale * scale * scale * scale);
  }
  Random one(3), two(3);
  const RecurrentCell plain = draw_recurrent_cell(4, one), large = draw_recurrent_cell(4, two, 2);
  CHECK(all_close(large.w_x, plain.w_x, 0));
  Random of_many(5);  // 1600 numbers: 5 standard deviations of their mean square are 0.18 of it
  const RecurrentCell many = draw_recurrent_cell(40, of_many);
  for (const Tensor<2>& w : {many.w_x, many.w_h})
    CHECK(std::abs(xt::sum(w * w)() / 40 - 1) < 0.18f);
  CHECK(all_close(large.w_h, Tensor<2>(2 * plain.w_h), 0));
}

TEST_CASE("the LSTM by hand: all gates half open") {
  // Weights 0: i = f = o = 1/2 and g = 0, so cells stay 0. With g = 1/2 they go to 1/4, 3/8 …
  LstmCell cell{xt::zeros<float>({4, 1}), xt::zeros<float>({4, 1}), xt::zeros<float>({4})};
  cell.bias(2) = std::atanh(0.5f);
  const LstmStates run = lstm(xt::ones<float>({3, 1}), cell);
  CHECK(all_close(run.cells, {{0.25f}, {0.375f}, {0.4375f}}, 8 * u));
  CHECK(std::abs(run.states(1, 0) - 0.5 * std::tanh(0.375)) <= 8 * u);
  const Tensor<1> echo = lstm_echo(run, cell, {2});
  CHECK(all_close(echo, {1, 0.5f, 0.25f}, 8 * u));  // the forget gate, once for each step
}

TEST_CASE("the LSTM equals PyTorch's in float64, and its echo is autograd's derivative") {
  const auto path = [](const char* name) {
    return std::string(T2T_FIXTURES "/lstm_") + name + ".npy";
  };
  const LstmCell cell{load_npy<2>(path("w_x")), load_npy<2>(path("w_h")),
                      load_npy<1>(path("bias"))};
  const LstmStates run = lstm(load_npy<2>(path("x")), cell);
  // Each step rounds sums of 2·6 products up to 4, and hands what it has to the next of 9 steps.
  const double bound = 9 * 4 * (std::sqrt(12.0) / 2 + 4) * u;
  CHECK(all_close(run.states, load_npy<2>(path("states")), bound));
  CHECK(all_close(run.cells, load_npy<2>(path("cells")), bound));
  CHECK(all_close(lstm_echo(run, cell, load_npy<1>(path("change"))), load_npy<1>(path("echo")),
                  bound));
}

TEST_CASE("a cell of another shape is refused") {
  Random random(1);
  LstmCell cell = draw_lstm_cell(2, random, 1);
  REQUIRE(cell.bias.size() == 8);
  CHECK(all_close(cell.bias, {0, 0, 1, 1, 0, 0, 0, 0}, 0));
  REFUSES(lstm(xt::ones<float>({3, 5}), cell), "w_x: wanted shape [20, 5], got [8, 2]");
  cell.bias = xt::zeros<float>({4});
  REFUSES(lstm(xt::ones<float>({3, 2}), cell), "bias: wanted shape [8], got [4]");
  REFUSES(recurrence(xt::ones<float>({3, 5}), draw_recurrent_cell(4, random)),
          "w_x: wanted shape [5, 5], got [4, 4]");
}

}  // namespace t2t::recurrence_test
