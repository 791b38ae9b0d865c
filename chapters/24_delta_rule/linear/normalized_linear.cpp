#include "24_delta_rule/linear/normalized_linear.hpp"

#include <cmath>

#include "shapes.hpp"

namespace t2t {

NormalizedState normalized_state(std::size_t D, std::size_t Dv) {
  return {xt::zeros<float>({D, Dv}), xt::zeros<float>({D})};
}

/// φ: x + 1 above 0, and e^x below, so that it is always above 0.
static float feature(float x) { return x > 0 ? x + 1 : std::exp(x); }

Tensor<2> normalized_linear(const Tensor<2>& q, const Tensor<2>& k, const Tensor<2>& v,
                            NormalizedState& state) {
  const std::size_t T = q.shape(0), D = q.shape(1), Dv = v.shape(1);
  expect_shape("k", k, {T, D});
  expect_shape("v", v, {T, Dv});
  expect_shape("values of the state", state.values, {D, Dv});
  expect_shape("total of the state", state.total, {D});
  Tensor<2> out = xt::zeros<float>({T, Dv});  // [T, Dv]
  for (std::size_t t = 0; t < T; ++t) {
    float sum = 0;  // of the weights
    for (std::size_t d = 0; d < D; ++d) {
      const float of_q = feature(q(t, d)), of_k = feature(k(t, d));
      sum += of_q * (state.total(d) += of_k);
      for (std::size_t e = 0; e < Dv; ++e)
        out(t, e) += of_q * (state.values(d, e) += of_k * v(t, e));
    }
    for (std::size_t e = 0; e < Dv; ++e) out(t, e) /= sum;
  }
  return out;
}

}  // namespace t2t
