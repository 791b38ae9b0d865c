#include "13_training/trainer/adamw.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "lanes.hpp"
#include "rows.hpp"
#include "shapes.hpp"

namespace t2t {

static constexpr std::size_t piece = 4096;  // numbers that a thread takes at once

bool decays(Role role) { return role != Role::gain && role != Role::bias; }

std::size_t adamw_pieces(std::size_t size) { return (size + piece - 1) / piece; }

/// A piece of one tensor. unbias1 and unbias2 are 1/(1 − βⁿ). Returns the sum of squared moves.
static double move_piece(const AdamWStep& step, float unbias1, float unbias2, float decay, Row w,
                         ConstRow g, Row mean, Row square) {
  const float beta1 = step.options.beta1, beta2 = step.options.beta2, eps = step.options.eps;
  float moved = 0;
#pragma omp simd reduction(+ : moved)
  for (std::size_t i = 0; i < w.size(); ++i) {
    const float gradient = step.gradient_scale * g[i];
    mean[i] = beta1 * mean[i] + (1 - beta1) * gradient;
    square[i] = beta2 * square[i] + (1 - beta2) * gradient * gradient;
    const float usual_size = std::sqrt(square[i] * unbias2) + eps;
    const float move = step.rate * (mean[i] * unbias1 / usual_size + decay * w[i]);
    w[i] -= move;
    moved += move * move;
  }
  return moved;
}

double adamw_step(const AdamWStep& step, float decay, Row w, ConstRow g, Row mean, Row square,
                  std::span<double> scratch) {
  const std::size_t size = w.size(), pieces = adamw_pieces(size);
  expect_shape("g", g, {size});
  expect_shape("mean", ConstRow(mean), {size});
  expect_shape("square", ConstRow(square), {size});
  expect(step.n >= 1, "n, the step", "at least 1", step.n);
  expect(scratch.size() >= pieces, "scratch", "one element for each piece", scratch.size());
  const float unbias1 = float(1 / (1 - std::pow(double(step.options.beta1), double(step.n))));
  const float unbias2 = float(1 / (1 - std::pow(double(step.options.beta2), double(step.n))));
  for_each_row(pieces, piece, [&](std::size_t i) {
    const std::size_t from = i * piece, count = std::min(piece, size - from);
    scratch[i] =
        move_piece(step, unbias1, unbias2, decay, w.subspan(from, count), g.subspan(from, count),
                   mean.subspan(from, count), square.subspan(from, count));
  });
  return std::accumulate(scratch.begin(), scratch.begin() + std::ptrdiff_t(pieces), 0.0);
}

double gradient_norm(const std::vector<ListedTensor>& gradients) {
  double sum = 0;
  for (const ListedTensor& tensor : gradients)
    for (std::size_t from = 0; from < tensor.numbers.size(); from += piece)
      sum += double(sum_of_squares(
          tensor.numbers.subspan(from, std::min(piece, tensor.numbers.size() - from))));
  return std::sqrt(sum);
}

float clip_factor(double norm, double max_norm) {
  return max_norm > 0 && norm > max_norm ? float(max_norm / norm) : 1.0f;
}

std::string first_not_finite(const std::vector<ListedTensor>& tensors) {
  for (const ListedTensor& tensor : tensors)
    for (const float x : tensor.numbers)
      if (!std::isfinite(x)) return full_name(tensor.info);
  return "";
}

}  // namespace t2t
