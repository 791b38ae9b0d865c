#include "09_language_model/loss.hpp"

#include <cmath>
#include <limits>

#include "01_embedding/embedding.hpp"
#include "lanes.hpp"
#include "rows.hpp"
#include "shapes.hpp"

namespace t2t {

/// −ln softmax(logits)[id] = ln Σ exp(logits − highest) + highest − logits[id]. The probability
/// itself is never made, since it may round to 0.
static double surprise(ConstRow logits, int id) {
  const float highest = max_row(logits);
  const float sum = sum_of(
      logits, [&](Lanes v) { return xsimd::exp(v - Lanes(highest)); },
      -std::numeric_limits<float>::infinity());
  return std::log(double(sum)) + double(highest) - double(logits[std::size_t(id)]);
}

double next_token_loss(ConstMatrix logits, std::span<const int> ids) {
  const std::size_t T = ids.size(), V = logits.cols;
  expect(T >= 2, "T, the tokens of a loss", "at least 2", T);
  expect_shape("logits", logits, {T, V});
  expect_ids(ids, V);

  // Row t is compared with token t + 1; the last row has no such token.
  Tensor<1> losses = empty(T - 1);  // [T − 1]
  for_each_row(T - 1, V,
               [&](std::size_t t) { losses(t) = float(surprise(logits.row(t), ids[t + 1])); });
  double sum = 0;
  for (const float loss : losses) sum += double(loss);
  return sum / double(T - 1);
}

}  // namespace t2t
