#include "24_delta_rule/chunks/chunk_solve.hpp"

#include <cmath>
#include <utility>

#include "shapes.hpp"

namespace t2t {

Tensor<1> running_sums(ConstRow g) {
  Tensor<1> sums = empty(g.size());  // [c]
  double sum = 0;
  for (std::size_t i = 0; i < g.size(); ++i) sums(i) = float(sum += g[i]);
  return sums;
}

Tensor<2> chunk_decays(const Tensor<1>& sums) {
  const std::size_t c = sums.size();
  Tensor<2> decays = xt::zeros<float>({c, c});  // [c, c]
  for (std::size_t i = 0; i < c; ++i)
    for (std::size_t j = 0; j <= i; ++j) decays(i, j) = std::exp(sums(i) - sums(j));
  return decays;
}

/// to −= factor · from.
static void subtract(float factor, ConstRow from, Row to) {
  for (std::size_t e = 0; e < to.size(); ++e) to[e] -= factor * from[e];
}

Tensor<2> solve_lower(const Tensor<2>& a, const Tensor<2>& x) {
  const std::size_t c = x.shape(0);
  expect_shape("a", a, {c, c});
  Tensor<2> u = x;  // [c, Dv]
  for (std::size_t i = 0; i < c; ++i)
    for (std::size_t j = 0; j < i; ++j) subtract(a(i, j), row(std::as_const(u), j), row(u, i));
  return u;
}

Tensor<2> solve_lower_transposed(const Tensor<2>& a, const Tensor<2>& x) {
  const std::size_t c = x.shape(0);
  expect_shape("a", a, {c, c});
  Tensor<2> u = x;  // [c, Dv]
  for (std::size_t i = c; i-- > 0;)
    for (std::size_t j = 0; j < i; ++j) subtract(a(i, j), row(std::as_const(u), i), row(u, j));
  return u;
}

}  // namespace t2t
