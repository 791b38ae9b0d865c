// How close the tensor core comes to raw BLAS and to this machine's memory.
#include <cmath>

#include "linalg.hpp"
#include "random.hpp"
#include "timing/bench.hpp"

extern "C" void cblas_sgemm(int order, int trans_a, int trans_b, int m, int n, int k, float alpha,
                            const float* a, int lda, const float* b, int ldb, float beta, float* c,
                            int ldc);

namespace t2t {

static void bench_products(Bench& bench) {
  Random random(1);
  for (const int n : {512, 1024, 2048}) {
    const auto size = std::size_t(n);
    const Tensor<2> a = random.normal<2>({size, size}), b = random.normal<2>({size, size});
    Tensor<2> y = empty(n, n), raw = empty(n, n);
    const auto ours = [&] { matmul_bt(a, b, y); };
    const auto blas = [&] {
      cblas_sgemm(101, 111, 112, n, n, n, 1, a.data(), n, b.data(), n, 0, raw.data(), n);
    };
    ours(), blas();
    bench.expect_right("matmul_bt", y == raw);
    bench.against("matmul_bt n = " + std::to_string(n), ours, "cblas_sgemm", blas);
  }
}

static void bench_matvec(Bench& bench) {
  const std::size_t N = 61440, K = 2048;  // 503 MB of weights
  const Tensor<2> w = xt::ones<float>({N, K});
  Random random(1);
  const Tensor<1> x = random.normal<1>({K});
  Tensor<1> y = empty(N);
  const auto work = [&] { matvec(w, row(x), row(y)); };
  work();
  double want = 0;
  for (const float value : x) want += value;
  bench.expect_right("matvec", std::abs(y(N - 1) - want) < 1e-2);
  bench.against_read("matvec, 503 MB of weights", double(N * K * sizeof(float)), work);
}

void bench(Bench& bench) {
  bench_products(bench);
  bench_matvec(bench);
}

}  // namespace t2t
