#include "linalg.hpp"

#include <omp.h>

#include <algorithm>
#include <sstream>

// Must come before xblas.hpp, which from 0.21 on reads it too late and then uses its own slow
// loops.
#include <xtensor-blas/xblas_config.hpp>
// (A block of its own, so that sorting the includes does not change the order.)
#include <xtensor-blas/xblas.hpp>

#include "blas_buffers.hpp"
#include "fetch_ahead.hpp"
#include "rows.hpp"
#include "shapes.hpp"

// OpenBLAS's own functions. With another BLAS they are absent, and these are null.
extern "C" {
[[gnu::weak]] char* openblas_get_config();
[[gnu::weak]] char* openblas_get_corename();
[[gnu::weak]] int openblas_get_parallel();
[[gnu::weak]] void openblas_set_num_threads(int);
}

namespace t2t {

/// Runs before main.
[[gnu::constructor]] static void prepare_blas() { take_blas_buffers(); }

/// A factor of a product, as it is stored or transposed.
struct Factor {
  ConstMatrix x;
  bool transposed = false;

  std::size_t rows() const { return transposed ? x.cols : x.rows; }
  std::size_t cols() const { return transposed ? x.rows : x.cols; }
  auto how() const { return transposed ? cxxblas::Trans : cxxblas::NoTrans; }
};

/// Calls BLAS: y = scale · a·b + kept · y.
static void gemm(Factor a, Factor b, Matrix y, float scale, float kept = 0) {
  using Index = xt::blas_index_t;
  if (y.rows == 0 || y.cols == 0) return;
  cxxblas::gemm<Index>(cxxblas::RowMajor, a.how(), b.how(), Index(y.rows), Index(y.cols),
                       Index(a.cols()), scale, a.x.data, Index(a.x.stride), b.x.data,
                       Index(b.x.stride), kept, y.data, Index(y.stride));
}

/// Throws unless the inner dimensions agree and y has the shape of the product.
static void expect_product(Factor a, Factor b, Matrix y) {
  const std::size_t K = a.cols(), N = b.cols();
  expect_shape("b", b.x, {b.transposed ? N : K, b.transposed ? K : N});
  expect_shape("y", y, {a.rows(), N});
}

void matmul(ConstMatrix a, ConstMatrix b, Matrix y, float scale) {
  expect_product({a}, {b}, y);
  gemm({a}, {b}, y, scale);
}

void matmul_bt(ConstMatrix a, ConstMatrix b, Matrix y, float scale) {
  expect_product({a}, {b, true}, y);
  if (a.rows == 1 && scale == 1) return matvec(b, a.row(0), y.row(0));
  gemm({a}, {b, true}, y, scale);
}

void add_matmul(ConstMatrix a, ConstMatrix b, Matrix y) {
  expect_product({a}, {b}, y);
  gemm({a}, {b}, y, 1, 1);
}

void add_matmul_at(ConstMatrix a, ConstMatrix b, Matrix y) {
  expect_product({a, true}, {b}, y);
  gemm({a, true}, {b}, y, 1, 1);
}

void add_rows(ConstMatrix added, Matrix x) {
  expect_shape("added", added, {x.rows, x.cols});
  for_each_row(x.rows, x.cols, [&](std::size_t t) {
    const Row x_t = x.row(t);
    const ConstRow added_t = added.row(t);
#pragma omp simd
    for (std::size_t c = 0; c < x_t.size(); ++c) x_t[c] += added_t[c];
  });
}

static float dot(ConstRow w, ConstRow x) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::size_t k = 0; k < x.size(); ++k) sum += w[k] * x[k];
  return sum;
}

/// A dot product with a row that comes from memory, in parts, each prefetched.
static float dot_with_weights(ConstRow w, ConstRow x) {
  constexpr std::size_t part = 256;  // 1 KiB
  float sum = 0;
  for (std::size_t k = 0; k < x.size(); k += part) {
    const std::size_t count = std::min(part, x.size() - k);
    fetch_ahead(&w[k], count * sizeof(float));
    sum += dot(w.subspan(k, count), x.subspan(k, count));
  }
  return sum;
}

void matvec(ConstMatrix w, ConstRow x, Row y) {
  expect_shape("x", x, {w.cols});
  expect_shape("y", y, {w.rows});
  for_each_row(w.rows, w.cols, [&](std::size_t n) { y[n] = dot_with_weights(w.row(n), x); });
}

Tensor<2> matmul(const Tensor<2>& a, const Tensor<2>& b) {
  Tensor<2> y = empty(a.shape(0), b.shape(1));
  matmul(ConstMatrix(a), ConstMatrix(b), Matrix(y));
  return y;
}

Tensor<2> matmul_bt(const Tensor<2>& a, const Tensor<2>& b) {
  Tensor<2> y = empty(a.shape(0), b.shape(0));
  matmul_bt(ConstMatrix(a), ConstMatrix(b), Matrix(y));
  return y;
}

/// Multiplies matrix h of a with matrix h of b. Each product runs on one core, several at a time.
static Tensor<3> products(const Tensor<3>& a, const Tensor<3>& b, bool transposed) {
  const std::size_t H = a.shape(0), M = a.shape(1), K = a.shape(2);
  const std::size_t N = transposed ? b.shape(1) : b.shape(2);
  if (transposed)
    expect_shape("b", b, {H, N, K});
  else
    expect_shape("b", b, {H, K, N});

  Tensor<3> y = empty(H, M, N);
  for_each_task(H, M * N + (M + N) * K, [&](std::size_t h, std::size_t) {
    gemm({matrix(a, h)}, {matrix(b, h), transposed}, matrix(y, h), 1);
  });
  return y;
}

Tensor<3> matmul(const Tensor<3>& a, const Tensor<3>& b) { return products(a, b, false); }
Tensor<3> matmul_bt(const Tensor<3>& a, const Tensor<3>& b) { return products(a, b, true); }

void set_threads(int count) {
  omp_set_num_threads(count);
  // OpenBLAS built with OpenMP reads that number itself. When it is told a number, version 0.3.34
  // expects as many threads inside a parallel task, where there is one, and waits forever.
  if (blas_info().threading == "pthreads") openblas_set_num_threads(count);
}

BlasInfo blas_info() {
  if (!openblas_get_config) return {"unknown BLAS", "", ""};
  std::istringstream words(openblas_get_config());  // "OpenBLAS 0.3.21 NO_LAPACKE …"
  std::string name, version;
  words >> name >> version;
  const char* threading[] = {"one thread", "pthreads", "OpenMP"};
  return {name + " " + version, threading[openblas_get_parallel() % 3], openblas_get_corename()};
}

}  // namespace t2t
