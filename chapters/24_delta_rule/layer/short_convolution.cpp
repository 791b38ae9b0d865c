#include "24_delta_rule/layer/short_convolution.hpp"

#include <algorithm>
#include <cmath>

#include "shapes.hpp"

namespace t2t {

Tensor<2> short_convolution(const Tensor<2>& x, const Tensor<2>& w, Tensor<2>& kept) {
  const std::size_t T = x.shape(0), channels = x.shape(1), W = w.shape(1);
  expect(W >= 1, "W, the tokens of a convolution", "at least 1", W);
  expect_shape("w", w, {channels, W});
  expect_shape("kept", kept, {W - 1, channels});
  Tensor<2> all = empty(W - 1 + T, channels);  // what was kept, then x
  std::ranges::copy(kept, all.begin());
  std::copy(x.begin(), x.end(), all.begin() + long(kept.size()));

  Tensor<2> y = xt::zeros<float>({T, channels});  // [T, channels]
  for (std::size_t t = 0; t < T; ++t)
    for (std::size_t c = 0; c < channels; ++c) {
      for (std::size_t j = 0; j < W; ++j) y(t, c) += w(c, j) * all(t + j, c);
      y(t, c) /= 1 + std::exp(-y(t, c));
    }
  kept = copy_of(ConstMatrix(all).rows_from(T, W - 1));
  return y;
}

}  // namespace t2t
