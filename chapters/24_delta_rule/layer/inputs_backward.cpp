#include "24_delta_rule/layer/inputs_backward.hpp"

#include <cmath>

#include "shapes.hpp"

namespace t2t {

// [unit]
Tensor<2> unit_rows_backward(ConstMatrix x, ConstMatrix dy, float eps) {
  expect(eps > 0, "eps", "a number above 0", eps);
  expect_shape("dy", dy, {x.rows, x.cols});
  Tensor<2> dx = empty(x.rows, x.cols);  // [T, D]
  for (std::size_t t = 0; t < x.rows; ++t) {
    double squares = eps, along = 0;
    for (std::size_t d = 0; d < x.cols; ++d) {
      squares += double(x.row(t)[d]) * x.row(t)[d];
      along += double(x.row(t)[d]) * dy.row(t)[d];
    }
    // ŷ·(ŷ·dy) is x·(x·dy)·r².
    const double r = 1 / std::sqrt(squares), share = along / squares;
    for (std::size_t d = 0; d < x.cols; ++d)
      dx(t, d) = float(r * (dy.row(t)[d] - share * x.row(t)[d]));
  }
  return dx;
}
// [/unit]

// [convolution]
Tensor<2> short_convolution_backward(const Tensor<2>& x, const Tensor<2>& w, const Tensor<2>& dy,
                                     Tensor<2>& dw) {
  const std::size_t T = x.shape(0), channels = x.shape(1), W = w.shape(1);
  expect(W >= 1, "W, the tokens of a convolution", "at least 1", W);
  expect_shape("w", w, {channels, W});
  expect_shape("dy", dy, {T, channels});
  expect_shape("dw", dw, {channels, W});
  Tensor<2> dx = xt::zeros<float>({T, channels});  // [T, channels]
  for (std::size_t t = 0; t < T; ++t) {
    const std::size_t before = t + 1 < W ? W - 1 - t : 0;  // weights that meet no token
    for (std::size_t c = 0; c < channels; ++c) {
      float sum = 0;
      for (std::size_t j = before; j < W; ++j) sum += w(c, j) * x(t + j + 1 - W, c);
      const float sigma = 1 / (1 + std::exp(-sum));
      const float dsum = dy(t, c) * sigma * (1 + sum * (1 - sigma));
      for (std::size_t j = before; j < W; ++j) {
        dw(c, j) += dsum * x(t + j + 1 - W, c);
        dx(t + j + 1 - W, c) += dsum * w(c, j);
      }
    }
  }
  return dx;
}
// [/convolution]

}  // namespace t2t
