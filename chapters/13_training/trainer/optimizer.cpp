#include "13_training/trainer/optimizer.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "lanes.hpp"
#include "shapes.hpp"

namespace t2t {

/// Returns the options, once they are good.
static StepOptions checked_options(const StepOptions& options) {
  const AdamW& a = options.adamw;
  for (const float beta : {a.beta1, a.beta2})
    expect(beta >= 0 && beta < 1, "beta, the share that a running mean keeps",
           "at least 0 and below 1", beta);
  expect(a.eps > 0, "eps", "more than 0", a.eps);
  return options;
}

Optimizer::Optimizer(const StepOptions& options, std::vector<ListedTensor> weights,
                     std::vector<ListedTensor> gradients)
    : options_(checked_options(options)),
      weights_(std::move(weights)),
      gradients_(std::move(gradients)) {
  std::size_t pieces = 0;
  storage_.reserve(2 * weights_.size());  // so that none of them moves
  for (std::vector<ListedTensor>* list : {&means_, &squares_})
    for (const auto& [info, numbers] : weights_) {
      storage_.emplace_back(xt::zeros<float>({numbers.size()}));
      list->push_back({info, row(storage_.back())});
      pieces = std::max(pieces, adamw_pieces(numbers.size()));
    }
  scratch_.resize(pieces);
}

void Optimizer::begin_step() {
  for (const ListedTensor& gradient : gradients_) std::ranges::fill(gradient.numbers, 0.0f);
}

StepReport Optimizer::end_step(double loss) {
  const std::size_t n = steps_done_ + 1;
  const double norm = gradient_norm(gradients_);
  if (!std::isfinite(norm) || !std::isfinite(loss)) {
    const std::string first = first_not_finite(gradients_);
    throw std::runtime_error(fmt::format(
        "step {}: the gradient of {} is not finite (loss {:.3g}); wanted a lower rate or more "
        "warm-up",
        n, first.empty() ? "all tensors together" : first, loss));
  }
  const float rate = rate_at(options_.schedule, n);
  const double ratio = update(rate, clip_factor(norm, options_.clip));
  steps_done_ = n;
  return {n, loss, norm, rate, ratio};
}

/// Moves all weights. Returns the norm of the matrices' move divided by the norm of the matrices.
double Optimizer::update(float rate, float gradient_scale) {
  const AdamWStep step{options_.adamw, rate, steps_done_ + 1, gradient_scale};
  double moved = 0, size = 0;
  for (std::size_t i = 0; i < weights_.size(); ++i) {
    const Row w = weights_[i].numbers;
    const bool decaying = decays(weights_[i].info.role);
    const double size_before = sum_of_squares(w);
    const double of_tensor =
        adamw_step(step, decaying ? options_.adamw.decay : 0, w, gradients_[i].numbers,
                   means_[i].numbers, squares_[i].numbers, scratch_);
    if (decaying) moved += of_tensor, size += size_before;
  }
  return size > 0 ? std::sqrt(moved / size) : 0;
}

}  // namespace t2t
