#include "19_ranks/sharded/sharded_step.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <stdexcept>

#include "13_training/trainer/adamw.hpp"
#include "19_ranks/collectives/values.hpp"

namespace t2t {

/// The values of every rank, one rank after the other. A value keeps 48 bits.
template <std::size_t N>
static std::vector<double> values_of_each(const Communicator& ranks,
                                          const std::array<double, N>& own) {
  std::vector<double> all(N * ranks.size);
  std::ranges::copy(own, all.begin() + std::ptrdiff_t(N * ranks.rank));
  return sum_of_values(ranks, all);
}

/// The largest magnitude of a finite element, and the first tensor with one that is not finite.
struct Largest {
  double magnitude = 0;
  std::size_t not_finite;
};
static Largest largest_of(const std::vector<ListedTensor>& tensors) {
  Largest found{.not_finite = tensors.size()};
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    float largest = 0;
    bool finite = true;
    for (const float x : tensors[i].numbers) {
      finite = finite && std::isfinite(x);
      largest = std::max(largest, std::isfinite(x) ? std::abs(x) : 0);
    }
    found.magnitude = std::max(found.magnitude, double(largest));
    if (!finite) found.not_finite = std::min(found.not_finite, i);
  }
  return found;
}

/// The same on every rank.
static Largest largest_of_all(const Communicator& ranks, const std::vector<ListedTensor>& tensors) {
  Largest found = largest_of(tensors);
  const std::vector<double> each =
      values_of_each<norm_values_first>(ranks, {found.magnitude, double(found.not_finite)});
  for (std::size_t r = 0; r < ranks.size; ++r) {
    found.magnitude = std::max(found.magnitude, each[2 * r]);
    found.not_finite = std::min(found.not_finite, std::size_t(each[2 * r + 1]));
  }
  return found;
}

/// A sum of squares as high·2^-30 + low·2^-60.
struct Squares {
  std::uint64_t high = 0, low = 0;
};
/// Of elements that are multiplied by `scale`, a power of two, which brings them below 1. A square
/// of a float is exact in a double.
static Squares squares_of(ConstRow x, double scale) {
  std::uint64_t high = 0, low = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double scaled = double(x[i]) * scale;
    const double in_units = scaled * scaled * 0x1p30, whole = std::floor(in_units);
    high += std::uint64_t(whole);
    low += std::uint64_t((in_units - whole) * 0x1p30);
  }
  return {high, low};
}

/// √ of the sum of all ranks' squares. An integer travels in two halves of 32 bits.
static double norm_of_scaled(const Communicator& ranks, const Squares& own) {
  const auto upper = [](std::uint64_t x) { return double(x >> 32); };
  const auto lower = [](std::uint64_t x) { return double(x & 0xffffffff); };
  const std::vector<double> each = values_of_each<norm_values_second>(
      ranks, {upper(own.high), lower(own.high), upper(own.low), lower(own.low)});
  Squares all;
  for (std::size_t i = 0; i < each.size(); i += 4) {
    all.high += (std::uint64_t(each[i]) << 32) + std::uint64_t(each[i + 1]);
    all.low += (std::uint64_t(each[i + 2]) << 32) + std::uint64_t(each[i + 3]);
  }
  return std::sqrt(double(all.high) * 0x1p-30 + double(all.low) * 0x1p-60);
}

double norm_of_shards(const Communicator& ranks, const std::vector<ListedTensor>& gradients,
                      std::size_t step, double loss) {
  const Largest largest = largest_of_all(ranks, gradients);
  int exponent = 0;
  std::frexp(largest.magnitude, &exponent);
  Squares own;
  if (largest.not_finite == gradients.size())
    for (const ListedTensor& tensor : gradients) {
      const Squares of_tensor = squares_of(tensor.numbers, std::ldexp(1.0, -exponent));
      own.high += of_tensor.high, own.low += of_tensor.low;
    }
  const double norm = std::ldexp(norm_of_scaled(ranks, own), exponent);
  const bool finite = largest.not_finite == gradients.size();
  if (finite && norm <= 1e19 && std::isfinite(loss)) return norm;
  throw std::runtime_error(fmt::format(
      "step {}: the gradient of {} is not finite (loss {:.3g}); wanted a lower rate or more "
      "warm-up",
      step, finite ? "all tensors together" : full_name(gradients[largest.not_finite].info), loss));
}

StepReport clipped_step(Optimizer& optimizer, const std::vector<ListedTensor>& gradients,
                        double norm, double clip, double loss) {
  const float factor = clip_factor(norm, clip);
  if (factor < 1)
    for (const ListedTensor& tensor : gradients)
      for (float& element : tensor.numbers) element *= factor;
  StepReport report = optimizer.end_step(loss);
  report.gradient_norm = norm;
  return report;
}

StepReport step_of_shards(const Communicator& ranks, Optimizer& optimizer,
                          const std::vector<ListedTensor>& gradients, double clip, double loss) {
  const double norm = norm_of_shards(ranks, gradients, optimizer.steps_done() + 1, loss);
  return clipped_step(optimizer, gradients, norm, clip, loss);
}

}  // namespace t2t
