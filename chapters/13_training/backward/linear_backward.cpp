#include "13_training/backward/linear_backward.hpp"

#include "13_training/backward/column_sums.hpp"
#include "linalg.hpp"
#include "shapes.hpp"

namespace t2t {

void add_input_gradient(ConstMatrix dy, ConstMatrix w, Matrix dx) {
  expect_shape("w", w, {dy.cols, w.cols});
  expect_shape("dx", dx, {dy.rows, w.cols});
  add_matmul(dy, w, dx);
}

void add_weight_gradient(ConstMatrix dy, ConstMatrix x, Matrix dw) {
  if (dw.rows == 0) return;
  expect_shape("x", x, {dy.rows, x.cols});
  expect_shape("dw", dw, {dy.cols, x.cols});
  add_matmul_at(dy, x, dw);
}

void add_bias_gradient(ConstMatrix dy, Tensor<1>& db) {
  if (db.size() == 0) return;
  expect_shape("db", db, {dy.cols});
  add_column_sums(dy.rows, row(db), [&](std::size_t t, std::size_t from, Row sums) {
    const float* dy_t = &dy.row(t)[from];
#pragma omp simd
    for (std::size_t c = 0; c < sums.size(); ++c) sums[c] += dy_t[c];
  });
}

}  // namespace t2t
