// A score as a weighted sum of RoPE's cosines and sines of the distance, fitted at trained
// distances only, for this chapter's program: what does such a score do at the distances beyond?
//
//   score(distance) = Σ over i of a[i]·cos(distance · f[i]) + b[i]·sin(distance · f[i])
//
// The score of a rotated query and a rotated key always has this form; a[i] and b[i] come from the
// elements of q and k in pair i. After Chen et al. 2023, "Extending Context Window of Large
// Language Models via Positional Interpolation", figure 2.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "03_rope/rope.hpp"
#include "random.hpp"

namespace t2t {

class FittedScore {
 public:
  /// Least squares for random targets in [-1, 1] at every 8th distance below trained.
  FittedScore(const Frequencies& frequencies,  // [D/2]
              std::size_t trained, Random& random)
      : weights_(2 * frequencies.size()) {
    const std::size_t N = weights_.size();
    std::vector<std::vector<double>> equations(N, std::vector<double>(N + 1, 0));
    // A little added to the diagonal keeps a and b from growing without limit.
    for (std::size_t i = 0; i < N; ++i) equations[i][i] = 1e-4;
    for (std::size_t distance = 0; distance < trained; distance += 8) {
      std::vector<double> w = waves(frequencies, distance);
      w.push_back(2 * random.next_uniform() - 1);
      for (std::size_t i = 0; i < N; ++i)
        for (std::size_t j = 0; j <= N; ++j) equations[i][j] += w[i] * w[j];
    }
    solve(equations);
  }

  /// The largest |score| at distances below length, computed with these frequencies, [D/2].
  double largest(const Frequencies& frequencies, std::size_t length) const {
    double most = 0;
    for (std::size_t distance = 0; distance < length; ++distance) {
      const std::vector<double> w = waves(frequencies, distance);
      double score = 0;
      for (std::size_t i = 0; i < w.size(); ++i) score += weights_[i] * w[i];
      most = std::max(most, std::abs(score));
    }
    return most;
  }

 private:
  static std::vector<double> waves(const Frequencies& frequencies, std::size_t distance) {
    std::vector<double> w;  // [D]
    for (const double f : frequencies) {
      w.push_back(std::cos(double(distance) * f));
      w.push_back(std::sin(double(distance) * f));
    }
    return w;
  }

  /// Gaussian elimination. The matrix is symmetric and positive definite, so no rows are swapped.
  void solve(std::vector<std::vector<double>>& equations) {
    const std::size_t N = weights_.size();
    for (std::size_t i = 0; i < N; ++i)
      for (std::size_t j = i + 1; j < N; ++j) {
        const double share = equations[j][i] / equations[i][i];
        for (std::size_t k = i; k <= N; ++k) equations[j][k] -= share * equations[i][k];
      }
    for (std::size_t i = N; i-- > 0;) {
      double rest = equations[i][N];
      for (std::size_t j = i + 1; j < N; ++j) rest -= equations[i][j] * weights_[j];
      weights_[i] = rest / equations[i][i];
    }
  }

  std::vector<double> weights_;  // [D]
};

}  // namespace t2t
