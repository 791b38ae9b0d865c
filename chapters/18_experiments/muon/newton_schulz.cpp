#include "18_experiments/muon/newton_schulz.hpp"

#include <cmath>

#include "linalg.hpp"
#include "shapes.hpp"

namespace t2t {

double singular_value_after(const NewtonSchulz& iteration, double s) {
  const double square = s * s;
  return s * (iteration.a + square * (iteration.b + square * iteration.c));
}

Tensor<2> newton_schulz_step(const NewtonSchulz& iteration, const Tensor<2>& x) {
  const Tensor<2> gram = matmul_bt(x, x);  // [m, m]  A
  const Tensor<2> polynomial =             // [m, m]
      iteration.b * gram + iteration.c * matmul(gram, gram);
  return iteration.a * x + matmul(polynomial, x);
}

/// g divided by the root of the sum of its squares. Computed in double: a float's range would end
/// at roots of 1e-19 and 1e19.
static Tensor<2> of_norm_one(Tensor<2> g) {
  double squares = 0;
  for (const float value : g) squares += double(value) * double(value);
  const double norm = std::sqrt(squares);
  expect(std::isfinite(norm), "g, the root of the sum of its squares", "a finite number", norm);
  if (norm > 0)
    for (float& value : g) value = float(double(value) / norm);
  return g;
}

Tensor<2> newton_schulz(const Tensor<2>& g, const NewtonSchulz& iteration) {
  expect(g.size() > 0, "g, its elements", "at least 1", g.size());
  const bool is_tall = g.shape(0) > g.shape(1);
  Tensor<2> x = of_norm_one(is_tall ? Tensor<2>(xt::transpose(g)) : g);  // [m, n], m ≤ n
  for (std::size_t n = 0; n < iteration.steps; ++n) x = newton_schulz_step(iteration, x);
  return is_tall ? Tensor<2>(xt::transpose(x)) : x;
}

}  // namespace t2t
