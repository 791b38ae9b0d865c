#include "11_flash_attention/online_softmax.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "shapes.hpp"

namespace t2t {

static constexpr float infinity = std::numeric_limits<float>::infinity();

void take(OnlineSoftmax& so_far, float score, ConstRow v) {
  expect_shape("v", v, {so_far.values.size()});
  if (score == -infinity) return;  // −infinity minus −infinity would be NaN

  // When this score is the highest so far, both sums shrink to match it.
  const float before = std::exchange(so_far.highest, std::max(so_far.highest, score));
  const float kept = std::exp(before - so_far.highest), weight = std::exp(score - so_far.highest);
  so_far.sum = kept * so_far.sum + weight;
  for (std::size_t d = 0; d < v.size(); ++d)
    so_far.values(d) = kept * so_far.values(d) + weight * v[d];
}

void join(OnlineSoftmax& so_far, const OnlineSoftmax& other) {
  expect_shape("other.values", other.values, {so_far.values.size()});
  if (other.highest == -infinity) return;

  // As in take, but both sides are sums, each relative to its own highest score.
  const float before = std::exchange(so_far.highest, std::max(so_far.highest, other.highest));
  const float kept = std::exp(before - so_far.highest);
  const float share = std::exp(other.highest - so_far.highest);
  so_far.sum = kept * so_far.sum + share * other.sum;
  for (std::size_t d = 0; d < so_far.values.size(); ++d)
    so_far.values(d) = kept * so_far.values(d) + share * other.values(d);
}

Tensor<1> mean(const OnlineSoftmax& so_far) {
  if (so_far.highest == -infinity)
    throw std::invalid_argument("mean: wanted at least one key that is not masked, got none");
  return so_far.values / so_far.sum;
}

/// q·k
static float dot(ConstRow q, ConstRow k) {
  float sum = 0;
  for (std::size_t d = 0; d < q.size(); ++d) sum += q[d] * k[d];
  return sum;
}

Tensor<2> online_attention(const Tensor<2>& q, const Tensor<2>& k, const Tensor<2>& v, Mask mask) {
  const std::size_t T = q.shape(0), S = k.shape(0), D = q.shape(1);
  expect_mask(T, S, mask);
  expect(D >= 1, "D, the width of a head", "at least 1", D);
  expect_shape("k", k, {S, D});
  expect_shape("v", v, {S, D});

  Tensor<2> out = empty(T, D);
  for (std::size_t t = 0; t < T; ++t) {
    OnlineSoftmax so_far(D);
    const KeyRange seen = keys_seen(t, T, S, mask);
    for (std::size_t s = seen.begin; s < seen.end; ++s)
      take(so_far, dot(row(q, t), row(k, s)) / std::sqrt(float(D)), row(v, s));
    std::ranges::copy(mean(so_far), row(out, t).begin());
  }
  return out;
}

}  // namespace t2t
