// What ./learn doctor prints last: the BLAS that programs are linked with, and this machine's limits.
#include <fmt/core.h>

#include "linalg.hpp"
#include "measure.hpp"
#include "rows.hpp"

using namespace t2t;

int main() {
  const BlasInfo blas = blas_info();
  fmt::print("  CPU              {}, {} threads in use\n", machine_name(), thread_count());
  fmt::print("  BLAS in use      {}, threads: {}, kernels: {}\n", blas.name, blas.threading,
             blas.kernels);
  fmt::print("  read bandwidth   {:.1f} GB/s\n", read_bandwidth() / 1e9);
  fmt::print("  copy bandwidth   {:.1f} GB/s\n", copy_bandwidth() / 1e9);
  fmt::print("  product peak     {:.0f} GFLOP/s (float32, 1024 x 1024 x 1024)\n",
             product_peak() / 1e9);
}
