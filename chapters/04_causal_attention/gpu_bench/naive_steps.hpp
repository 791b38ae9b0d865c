// How far the first two naive kernels are from float64, each held to its own bound: scores and
// weights [B, H, T, S] in device memory. What the third writes is checked as worst_error does.
//
// A bound is of the first order in u = 2^-24, the largest share by which a float32 is rounded.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "04_causal_attention/gpu_bench/gpu_problem.hpp"

namespace t2t {

/// What one query's values should be for the keys that it sees, and how far off they may be.
struct WantedRow {
  std::vector<double> wanted, bounds;
};

/// A score is a sum of D products, multiplied by 1/√D: D + 4 roundings at most.
inline WantedRow wanted_scores(const Tensors<float>& x, const AttentionCall<float>& call,
                               const Query& at) {
  ExactScores exact = exact_scores(x, call, at);
  for (double& size : exact.sizes) size *= (x.D + 4) * 0x1p-24;
  return {std::move(exact.scores), std::move(exact.sizes)};
}

/// A weight exp(score - highest) / sum is off by a share of it: twice what the scores are off by,
/// and the roundings of the difference (in the weight and in the sum), of the two exponentials, of
/// the division and of the sum, whose longest part is a lane's S/32 terms.
inline WantedRow wanted_weights(const Tensors<float>& x, const AttentionCall<float>& call,
                                const Query& at) {
  const WantedRow scores = wanted_scores(x, call, at);
  const auto [lowest, highest] = std::ranges::minmax(scores.wanted);
  const double roundings = 2 * (highest - lowest) + x.S / 32.0 + 16;
  const double share = 2 * std::ranges::max(scores.bounds) + roundings * 0x1p-24;
  WantedRow weights{exact_softmax(scores.wanted), {}};
  for (const double weight : weights.wanted) weights.bounds.push_back(share * weight);
  return weights;
}

/// The largest error of the sampled queries' values, as a multiple of its bound. Infinite for NaN,
/// and when the value of a masked key is not `hidden`.
inline double step_error(Tensors<float>& x, const DeviceBuffer<float>& numbers, float hidden,
                         const auto& wanted_row) {
  synchronize();
  const AttentionCall<float> call = x.call();
  std::vector<float> got(std::size_t(x.S), 0);
  double worst = 0;
  for (const Query& at : sampled_queries(x)) {
    const std::size_t first = ((std::size_t(at.b) * x.H + at.h) * x.T + at.t) * got.size();
    copy_from_device(got.data(), numbers.data() + first, got.size() * sizeof(float));
    const auto [wanted, bounds] = wanted_row(x, call, at);
    for (std::size_t s = 0; s < wanted.size(); ++s)
      worst = worse(worst, std::abs(double(got[s]) - wanted[s]) / bounds[s]);
    for (std::size_t s = wanted.size(); s < got.size(); ++s)
      if (!(got[s] == hidden)) worst = std::numeric_limits<double>::infinity();
  }
  return worst;
}

inline double scores_error(Tensors<float>& x, const DeviceBuffer<float>& scores) {
  return step_error(x, scores, -std::numeric_limits<float>::infinity(), wanted_scores);
}
inline double weights_error(Tensors<float>& x, const DeviceBuffer<float>& weights) {
  return step_error(x, weights, 0, wanted_weights);
}

}  // namespace t2t
