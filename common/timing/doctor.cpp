// The last part of ./learn doctor: the BLAS that programs are linked with, and this machine's
// limits. With --kernels it prints only which kernels that BLAS chooses.
#include <fmt/core.h>

#include "linalg.hpp"
#include "rows.hpp"
#include "timing/measure.hpp"

using namespace t2t;

int main(int argc, char** argv) {
  const BlasInfo blas = blas_info();
  if (argc > 1 && argv[1] == std::string("--kernels")) return fmt::print("{}\n", blas.kernels), 0;
  fmt::print("  CPU              {}, {} threads in use\n", machine_name(), thread_count());
  fmt::print("  BLAS in use      {}, threads: {}, kernels: {}\n", blas.name, blas.threading,
             blas.kernels);
  fmt::print("  read bandwidth   {:.1f} GB/s\n", read_bandwidth() / 1e9);
  fmt::print("  copy bandwidth   {:.1f} GB/s\n", copy_bandwidth() / 1e9);
  fmt::print("  product peak     {:.0f} GFLOP/s (float32, 1024 x 1024 x 1024)\n",
             product_peak() / 1e9);
}
