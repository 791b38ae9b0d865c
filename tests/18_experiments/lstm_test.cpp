// What must be true of the LSTM's backward pass, and of the language model made of LSTM layers.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "13_training/along_gradient.hpp"
#include "13_training/cases.hpp"
#include "13_training/differences.hpp"
#include "18_experiments/lstm/lstm_backward.hpp"
#include "18_experiments/lstm/lstm_model.hpp"
#include "support/all_close.hpp"
#include "support/hashed_numbers.hpp"
#include "support/refuses.hpp"

namespace t2t::lstm_test {

using std::size_t;

static constexpr size_t T = 7, C = 5;

static double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

/// Chapter 04's lstm in float64: [T, C].
static Doubles states_of(const Doubles& x, const Doubles& w_x, const Doubles& w_h,
                         const Doubles& bias) {
  Doubles states(T, C), cells(T, C);
  for (size_t t = 0; t < T; ++t)
    for (size_t c = 0; c < C; ++c) {
      double gates[4];
      for (size_t n = 0; n < 4; ++n) {
        const size_t row = n * C + c;
        gates[n] = bias(0, row);
        for (size_t i = 0; i < C; ++i) {
          gates[n] += w_x(row, i) * x(t, i);
          if (t > 0) gates[n] += w_h(row, i) * states(t - 1, i);
        }
      }
      const double before = t > 0 ? cells(t - 1, c) : 0;
      cells(t, c) = sigmoid(gates[1]) * before + sigmoid(gates[0]) * std::tanh(gates[2]);
      states(t, c) = sigmoid(gates[3]) * std::tanh(cells(t, c));
    }
  return states;
}

static LstmCell cell_of(size_t width) {
  return {numbers(1, 2, 0, 4 * width, width), numbers(2, 2, 0, 4 * width, width),
          numbers(3, 1, 0.2f, 4 * width)};
}
static LstmCell zeros_of(size_t width) {
  return {zeros(4 * width, width), zeros(4 * width, width), zeros(4 * width)};
}

TEST_CASE("each gradient of an LSTM is that of finite differences in float64") {
  const LstmCell cell = cell_of(C);
  const Tensor<2> x = numbers(4, 2, 0, T, C), dstates = numbers(5, 2, 0, T, C);
  LstmCell gradients = zeros_of(C);
  const Tensor<2> dx = lstm_backward(x, cell, lstm(x, cell), dstates, gradients);

  Doubles x_d(x), w_x(cell.w_x), w_h(cell.w_h), bias(cell.bias);
  const auto loss = [&] { return dot(dstates, states_of(x_d, w_x, w_h, bias)); };
  // Each step back is a product over 4·C sums; numbers stay below 8.
  const double bound = rounding(4 * C * T, 8);
  CHECK(all_close(dx, by_differences(x_d, loss), bound));
  CHECK(all_close(gradients.w_x, by_differences(w_x, loss), bound));
  CHECK(all_close(gradients.w_h, by_differences(w_h, loss), bound));
  CHECK(all_close(as_matrix(gradients.bias), by_differences(bias, loss), bound));
}

TEST_CASE("by hand: one token, whose gates are half open") {
  LstmCell cell = zeros_of(1);
  cell.w_x(2, 0) = 1;  // only the candidate reads x
  const Tensor<2> x = {{0.5f}}, dstates = {{1}};
  LstmCell gradients = zeros_of(1);
  const Tensor<2> dx = lstm_backward(x, cell, lstm(x, cell), dstates, gradients);
  // cell = tanh(0.5)/2 = 0.2311, state = tanh(cell)/2. With s = 1 − tanh²(cell) = 0.9485:
  // dcell = s/2, dg's sum = dcell/2 · (1 − tanh²(0.5)) = 0.2371 · 0.7864 = 0.1865.
  CHECK(dx(0, 0) == doctest::Approx(0.1865).epsilon(1e-3));
  CHECK(gradients.w_x(2, 0) == doctest::Approx(0.0932).epsilon(1e-3));
  CHECK(gradients.bias(2) == doctest::Approx(0.1865).epsilon(1e-3));
  CHECK(gradients.bias(1) == 0);  // there is nothing to forget
}

TEST_CASE("gradients are added to those before, and the same bits come each time") {
  const LstmCell cell = cell_of(C);
  const Tensor<2> x = numbers(4, 2, 0, T, C), dstates = numbers(5, 2, 0, T, C);
  LstmCell once = zeros_of(C), twice = zeros_of(C);
  lstm_backward(x, cell, lstm(x, cell), dstates, once);
  for (int i = 0; i < 2; ++i) lstm_backward(x, cell, lstm(x, cell), dstates, twice);
  CHECK(all_close(twice.w_h, Tensor<2>(2 * once.w_h), rounding(T, 8)));
  LstmCell other = zeros_of(C + 1);
  REFUSES(lstm_backward(x, cell, lstm(x, cell), dstates, other),
          "w_x: wanted shape [20, 5], got [24, 6]");
  REFUSES(lstm_backward(x, cell, lstm(x, cell), zeros(T, C + 1), once),
          "dstates: wanted shape [7, 5], got [7, 6]");
}

static LstmModel tiny() {
  Random random(3);
  return draw_lstm_model(257, 24, 2, random);
}
static Ids text_ids() {
  Ids ids;
  for (int i = 0; i < 600; ++i) ids.push_back(97 + i * i % 23);
  return ids;
}
static Batch first_texts() {
  Batch batch = make_batch(3, 13);
  fill_in_order(batch, text_ids(), 0);
  batch.targets[5] = not_learned;
  return batch;
}

TEST_CASE(
    "an LSTM's layers and tied head: along the gradient the loss grows by its norm's square") {
  LstmModel model = tiny(), gradients = tiny();
  model.embedding *= 4;  // as large as after some training
  for (ListedTensor& tensor : tensors_of(gradients)) std::ranges::fill(tensor.numbers, 0.0f);
  const Batch batch = first_texts();
  const double loss = lstm_loss(model, batch, 1.0f / 38, &gradients);
  CHECK(lstm_loss(model, batch) == loss);
  CHECK(parameter_count(model) == 257 * 24 + 2 * (8 * 24 * 24 + 4 * 24));
  double square = 0;
  for (const ListedTensor& tensor : tensors_of(gradients)) {
    double own = 0;
    for (const float g : tensor.numbers) own += double(g) * double(g);
    CHECK(own > 0);
    square += own;
  }
  const double h = 4e-4 / std::sqrt(square);
  const auto loss_at = [&](double h) {
    LstmModel moved = model;
    move_along(tensors_of(gradients), h, tensors_of(moved));
    return lstm_loss(moved, batch) / 38;
  };
  CHECK(std::abs((loss_at(h) - loss_at(-h)) / (2 * h) / square - 1) < 2e-3);
}

TEST_CASE("an LSTM learns a text by heart, in the same steps each time" *
          doctest::test_suite("slow")) {
  const Ids ids = text_ids();
  const TrainingOptions options{
      .B = 4, .T = 16, .schedule = {2e-2f, 2e-2f, 1, 300}, .adamw = {.decay = 0}, .seed = 9};
  LstmTrainer trainer(tiny(), options, ids), again(tiny(), options, ids);
  const double before = trainer.loss_of(ids);
  CHECK(before == doctest::Approx(std::log(257)).epsilon(0.02));  // it knows nothing yet
  for (int i = 0; i < 3; ++i) CHECK(trainer.step().loss == again.step().loss);
  for (int i = 0; i < 200; ++i) trainer.step();
  CHECK(trainer.loss_of(ids) < 0.5 * before);
  REFUSES(trainer.loss_of(std::span(ids).first(1)),
          "ids, a text to measure: wanted at least 2 tokens, got 1");
}

}  // namespace t2t::lstm_test
