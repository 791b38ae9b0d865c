#include "linalg.hpp"

#include <omp.h>

#include <sstream>
#include <xtensor-blas/xblas.hpp>

#include "lanes.hpp"
#include "rows.hpp"
#include "shapes.hpp"

// OpenBLAS's own words, absent from any other BLAS: then these are null.
extern "C" {
[[gnu::weak]] char* openblas_get_config();
[[gnu::weak]] char* openblas_get_corename();
[[gnu::weak]] int openblas_get_parallel();
[[gnu::weak]] void openblas_set_num_threads(int);
}

namespace t2t {

/// BLAS itself. b is read as [K, N], or as [N, K] when transposed.
static void gemm(ConstMatrix a, ConstMatrix b, bool transposed, Matrix y, float scale) {
  using Index = xt::blas_index_t;
  if (y.rows == 0 || y.cols == 0) return;
  cxxblas::gemm<Index>(cxxblas::RowMajor, cxxblas::NoTrans,
                       transposed ? cxxblas::Trans : cxxblas::NoTrans, Index(y.rows),
                       Index(y.cols), Index(a.cols), scale, a.data, Index(a.stride), b.data,
                       Index(b.stride), 0.0f, y.data, Index(y.stride));
}

/// Throws unless inner dimensions meet and y has room for exactly the product.
static void expect_product(ConstMatrix a, ConstMatrix b, bool transposed, Matrix y) {
  expect_shape("b", b,
               {transposed ? b.rows : a.cols, transposed ? a.cols : b.cols});  // K meets K
  expect_shape("y", y, {a.rows, transposed ? b.rows : b.cols});
}

void matmul(ConstMatrix a, ConstMatrix b, Matrix y, float scale) {
  expect_product(a, b, false, y);
  gemm(a, b, false, y, scale);
}

void matmul_bt(ConstMatrix a, ConstMatrix b, Matrix y, float scale) {
  expect_product(a, b, true, y);
  if (a.rows == 1 && scale == 1) return matvec(b, a.row(0), y.row(0));
  gemm(a, b, true, y, scale);
}

/// Four rows at once: x is loaded once for all four, and four reads of memory are under way.
static void four_dots(ConstMatrix w, std::size_t n, ConstRow x, Row y) {
  constexpr std::size_t W = Lanes::size;
  const float *w0 = &w.data[n * w.stride], *w1 = w0 + w.stride, *w2 = w1 + w.stride,
              *w3 = w2 + w.stride;
  Lanes s0(0), s1(0), s2(0), s3(0);
  std::size_t k = 0;
  for (; k + W <= x.size(); k += W) {
    const Lanes x_k = Lanes::load_unaligned(&x[k]);
    s0 = xsimd::fma(Lanes::load_unaligned(w0 + k), x_k, s0);
    s1 = xsimd::fma(Lanes::load_unaligned(w1 + k), x_k, s1);
    s2 = xsimd::fma(Lanes::load_unaligned(w2 + k), x_k, s2);
    s3 = xsimd::fma(Lanes::load_unaligned(w3 + k), x_k, s3);
  }
  const Lanes sums[] = {s0, s1, s2, s3};
  for (std::size_t i = 0; i < 4; ++i) {
    y[n + i] = add_lanes(sums[i]);
    for (std::size_t rest = k; rest < x.size(); ++rest)
      y[n + i] += w.data[(n + i) * w.stride + rest] * x[rest];
  }
}

static float one_dot(ConstRow w, ConstRow x) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::size_t k = 0; k < x.size(); ++k) sum += w[k] * x[k];
  return sum;
}

void matvec(ConstMatrix w, ConstRow x, Row y) {
  expect_shape("x", x, {w.cols});
  expect_shape("y", y, {w.rows});
  const std::size_t fours = w.rows / 4;
  for_each_row(fours, 4 * w.cols, [&](std::size_t i) { four_dots(w, 4 * i, x, y); });
  for (std::size_t n = 4 * fours; n < w.rows; ++n) y[n] = one_dot(w.row(n), x);
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

/// Each matrix of a with its partner in b; the pairs share the cores, each product on one.
static Tensor<3> products(const Tensor<3>& a, const Tensor<3>& b, bool transposed) {
  const std::size_t H = a.shape(0), M = a.shape(1), K = a.shape(2);
  const std::size_t N = transposed ? b.shape(1) : b.shape(2);
  if (transposed)
    expect_shape("b", b, {H, N, K});
  else
    expect_shape("b", b, {H, K, N});

  Tensor<3> y = empty(H, M, N);
  for_each_task(H, [&](std::size_t h, std::size_t) {
    gemm(matrix(a, h), matrix(b, h), transposed, matrix(y, h), 1);
  });
  return y;
}

Tensor<3> matmul(const Tensor<3>& a, const Tensor<3>& b) { return products(a, b, false); }
Tensor<3> matmul_bt(const Tensor<3>& a, const Tensor<3>& b) { return products(a, b, true); }

void set_threads(int count) {
  omp_set_num_threads(count);
  if (openblas_set_num_threads) openblas_set_num_threads(count);
}

BlasInfo blas_info() {
  if (!openblas_get_config) return {"a BLAS that does not tell its name", "", ""};
  std::istringstream words(openblas_get_config());  // "OpenBLAS 0.3.21 NO_LAPACKE …"
  std::string name, version;
  words >> name >> version;
  const char* threading[] = {"one thread", "pthreads", "OpenMP"};
  return {name + " " + version, threading[openblas_get_parallel() % 3], openblas_get_corename()};
}

}  // namespace t2t
