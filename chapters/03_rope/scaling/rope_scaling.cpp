#include "03_rope/scaling/rope_scaling.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "03_rope/rope.hpp"
#include "shapes.hpp"

namespace t2t {

static void expect_factor(double factor) {
  expect(factor >= 1 && std::isfinite(factor), "factor", "a finite number, at least 1", factor);
}

Frequencies linear_scaling(const Frequencies& frequencies, double factor) {
  expect_factor(factor);
  Frequencies scaled = frequencies;  // [D/2]
  for (double& f : scaled) f /= factor;
  return scaled;
}

Frequencies ntk_scaling(std::size_t D, double theta, double factor) {
  expect(D % 2 == 0 && D > 2, "D", "an even number above 2", D);
  expect_factor(factor);
  const double stretch = std::pow(factor, double(D) / double(D - 2));
  return rope_frequencies(D, theta * stretch);
}

Frequencies llama3_scaling(const Frequencies& frequencies, const Llama3Scaling& scaling) {
  const auto& [factor, low, high, trained] = scaling;
  expect_factor(factor);
  expect(low > 0, "low", "above 0", low);
  expect(high > low, "high", "more than low", high);

  Frequencies scaled;  // [D/2]
  for (const double f : frequencies) {
    const double turns = double(trained) * f / (2 * std::numbers::pi);
    const double kept = std::clamp((turns - low) / (high - low), 0.0, 1.0);
    scaled.push_back(kept * f + (1 - kept) * f / factor);
  }
  return scaled;
}

Frequencies yarn_scaling(std::size_t D, double theta, const YarnScaling& scaling) {
  const auto& [factor, fast, slow, trained] = scaling;
  expect_factor(factor);
  expect(theta > 1, "theta", "more than 1", theta);
  expect(slow > 0, "slow", "above 0", slow);
  expect(fast > slow, "fast", "more than slow", fast);
  const double turns_of_pair_0 = double(trained) / (2 * std::numbers::pi);
  expect(turns_of_pair_0 >= slow, "trained",
         fmt::format("at least 2π · slow = {:.4g}", 2 * std::numbers::pi * slow), trained);

  // The index i of the pair that makes this many full turns; it need not be an integer:
  // trained · θ^(−2i/D) = 2π · turns.
  const auto pair_of = [&](double turns) {
    return double(D) * std::log(turns_of_pair_0 / turns) / (2 * std::log(theta));
  };
  const double first = std::max(std::floor(pair_of(fast)), 0.0);
  double last = std::min(std::ceil(pair_of(slow)), double(D) - 1);
  if (last == first) last += 0.001;  // as in the authors' code, to avoid a division by zero

  Frequencies frequencies = rope_frequencies(D, theta);  // [D/2]
  for (std::size_t i = 0; i < frequencies.size(); ++i) {
    const double f = frequencies[i];
    const double slowed = std::clamp((double(i) - first) / (last - first), 0.0, 1.0);
    frequencies[i] = slowed * f / factor + (1 - slowed) * f;
  }
  return frequencies;
}

float yarn_magnitude(double factor) {
  expect_factor(factor);
  return float(0.1 * std::log(factor) + 1);
}

}  // namespace t2t
