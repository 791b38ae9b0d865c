#include "13_training/trainer/adamw.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "lanes.hpp"
#include "rows.hpp"
#include "shapes.hpp"

namespace t2t {

namespace {

constexpr std::size_t numbers_at_once = 4096;

/// 1 / (1 - beta^n), which makes up for a running mean's beginning at 0.
float correction(float beta, std::size_t n) {
  return float(1 / (1 - std::pow(double(beta), double(n))));
}

float square_of(float x) { return x * x; }

}  // namespace

bool decays(Role role) {
  switch (role) {
    case Role::gain:
    case Role::bias:
      return false;
    default:
      return true;
  }
}

std::size_t adamw_pieces(std::size_t size) {
  return size / numbers_at_once + (size % numbers_at_once > 0);
}

double adamw_step(const AdamWStep& step, float decay, Row w, ConstRow g, Row mean, Row square,
                  std::span<double> scratch) {
  const std::size_t size = w.size(), pieces = adamw_pieces(size);
  expect_shape("g", g, {size});
  expect_shape("mean", ConstRow(mean), {size});
  expect_shape("square", ConstRow(square), {size});
  if (step.n == 0) refuse("n, the step", "at least 1", step.n);
  if (scratch.size() < pieces) refuse("scratch", "one element for each piece", scratch.size());

  const AdamW& options = step.options;
  const float of_mean = correction(options.beta1, step.n);
  const float of_square = correction(options.beta2, step.n);
  for_each_row(pieces, numbers_at_once, [&](std::size_t p) {
    const std::size_t end = std::min(size, (p + 1) * numbers_at_once);
    float moved = 0;
    for (std::size_t i = p * numbers_at_once; i < end; ++i) {
      const float slope = g[i] * step.gradient_scale + decay * w[i];  // WRONG
      mean[i] = options.beta1 * mean[i] + (1 - options.beta1) * slope;
      square[i] = options.beta2 * square[i] + (1 - options.beta2) * square_of(slope);
      const float direction = mean[i] * of_mean / (std::sqrt(square[i] * of_square) + options.eps);
      const float distance = step.rate * direction;  // WRONG
      w[i] -= distance;
      moved += square_of(distance);
    }
    scratch[p] = moved;
  });
  double total = 0;
  for (std::size_t p = 0; p < pieces; ++p) total += scratch[p];
  return total;
}

double gradient_norm(const std::vector<ListedTensor>& gradients) {
  double squares = 0;
  for (const ListedTensor& tensor : gradients) {
    ConstRow left = tensor.numbers;
    while (!left.empty()) {
      const std::size_t count = std::min(left.size(), numbers_at_once);
      squares += sum_of_squares(left.first(count));
      left = left.subspan(count);
    }
  }
  return std::sqrt(squares);
}

float clip_factor(double norm, double max_norm) {
  const bool too_long = max_norm > 0 && norm > max_norm;
  return too_long ? float(max_norm / norm) : 1;
}

std::string first_not_finite(const std::vector<ListedTensor>& tensors) {
  const auto broken = [](const ListedTensor& tensor) {
    return !std::ranges::all_of(tensor.numbers, [](float x) { return std::isfinite(x); });
  };
  const auto found = std::ranges::find_if(tensors, broken);
  return found == tensors.end() ? "" : full_name(found->info);
}

}  // namespace t2t
