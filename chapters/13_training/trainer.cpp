#include "13_training/trainer.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "lanes.hpp"
#include "shapes.hpp"

namespace t2t {

static TrainingOptions checked(const TrainingOptions& options) {
  expect(options.parts >= 1, "parts of a batch", "at least 1", double(options.parts));
  const AdamW& a = options.adamw;
  for (const float beta : {a.beta1, a.beta2})
    expect(beta >= 0 && beta < 1, "beta, what a running mean keeps", "at least 0 and below 1",
           double(beta));
  expect(a.eps > 0, "eps", "more than 0", double(a.eps));
  return options;
}

Trainer::Trainer(Model model, const TrainingOptions& options, std::span<const int> ids)
    : options_(checked(options)),
      model_(std::move(model)),
      windows_(ids, options.T, options.seed),
      batch_{options.B, options.T, std::vector<int>(options.B * options.T),
             std::vector<int>(options.B * options.T)},
      passes_(model_.config(), options.B, options.T),
      gradients_(zeros_like(model_.weights(), model_.config())),
      mean_(zeros_like(model_.weights(), model_.config())),
      square_(zeros_like(model_.weights(), model_.config())),
      gradient_list_(tensors_of(gradients_, model_.config())),
      means_(tensors_of(mean_, model_.config())),
      squares_(tensors_of(square_, model_.config())) {
  std::size_t pieces = 0;
  for (const ListedTensor& tensor : means_)
    pieces = std::max(pieces, adamw_pieces(tensor.numbers.size()));
  scratch_.resize(pieces);
}

StepReport Trainer::step() {
  const std::size_t tokens = options_.parts * options_.B * options_.T;
  double sum = 0;
  begin_step();
  // Each part adds its share of the mean's gradient.
  for (std::size_t part = 0; part < options_.parts; ++part) {
    windows_.fill(batch_, (std::uint64_t(steps_done_) * options_.parts + part) * options_.B);
    sum += passes_.add(model_, batch_, 1 / float(tokens), gradients_);
  }
  return end_step(sum / double(tokens));
}

StepReport Trainer::step_on(const Batch& batch) {
  const std::size_t learned = count_learned(batch.targets);
  expect(learned > 0, "targets that are to be learned", "at least 1", 0);
  begin_step();
  return end_step(passes_.add(model_, batch, 1 / float(learned), gradients_) / double(learned));
}

void Trainer::begin_step() {
  for (const ListedTensor& gradient : gradient_list_) std::ranges::fill(gradient.numbers, 0.0f);
}

/// With the gradients of the whole batch: clips them, and moves the weights.
StepReport Trainer::end_step(double loss) {
  const std::size_t n = steps_done_ + 1;
  const double norm = gradient_norm(gradient_list_);
  if (!std::isfinite(norm) || !std::isfinite(loss))
    throw std::runtime_error(fmt::format(
        "step {}: the gradient of {} is not finite (loss {:.3g}); wanted a lower rate or more "
        "warm-up",
        n, first_not_finite(gradient_list_), loss));
  const float rate = rate_at(options_.schedule, n);
  const double ratio = update(rate, clip_factor(norm, options_.clip));
  steps_done_ = n;
  return {n, loss, norm, rate, ratio};
}

/// Moves all weights. Returns the size of the matrices' move as a share of their own.
double Trainer::update(float rate, float gradient_scale) {
  const AdamWStep step{options_.adamw, rate, steps_done_ + 1, gradient_scale};
  double moved = 0, size = 0;
  model_.change_weights([&](ModelWeights& weights) {
    std::size_t i = 0;
    for_each_tensor(weights, model_.config(), [&](const TensorInfo& info, auto& tensor) {
      if (info.size() == 0) return;
      const Row w = numbers_of(tensor);
      const bool decaying = decays(info.role);
      const double size_before = sum_of_squares(w);
      const double of_tensor =
          adamw_step(step, decaying ? options_.adamw.decay : 0, w, gradient_list_[i].numbers,
                     means_[i].numbers, squares_[i].numbers, scratch_);
      if (decaying) moved += of_tensor, size += size_before;
      ++i;
    });
  });
  return size > 0 ? std::sqrt(moved / size) : 0;
}

double Trainer::loss_of(std::span<const int> ids, std::size_t most_windows) {
  const std::size_t at_once = options_.B * options_.T;
  double sum = 0;
  std::size_t learned = 0;
  for (std::size_t first = 0; first < most_windows * options_.T; first += at_once) {
    if (!fill_in_order(batch_, ids, first)) break;
    sum += passes_.loss(model_, batch_);
    learned += count_learned(batch_.targets);
  }
  expect(learned > 0, "ids, a text to measure", "at least 2 tokens", double(ids.size()));
  return sum / double(learned);
}

std::vector<ListedTensor> Trainer::weights() {
  std::vector<ListedTensor> list;
  model_.change_weights([&](ModelWeights& w) { list = tensors_of(w, model_.config()); });
  return list;
}

Trainer::Memory Trainer::memory() const {
  const std::size_t weights = bytes(model_.weights());
  return {weights, weights, 2 * weights, passes_.kept_bytes(), passes_.scratch_bytes()};
}

}  // namespace t2t
