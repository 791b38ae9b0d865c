// The last part of ./learn doctor: the BLAS that programs are linked with, and this machine's
// limits. With --kernels it prints only which kernels that BLAS chooses.
#include <fmt/core.h>

#include "lanes.hpp"
#include "linalg.hpp"
#include "rows.hpp"
#include "timing/measure.hpp"

using namespace t2t;

/// The level of instructions that the book is built for, by what the compiler may use.
static const char* level() {
#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512VL__) && defined(__AVX512DQ__)
  return "x86-64-v4 (AVX-512)";
#elif defined(__AVX2__) && defined(__FMA__)
  return "x86-64-v3 (AVX2 and FMA)";
#elif defined(__SSE4_2__)
  return "x86-64-v2 (SSE4.2)";
#elif defined(__aarch64__)
  return "64-bit ARM (NEON)";
#else
  return "the least that the compiler knows";
#endif
}

int main(int argc, char** argv) {
  const BlasInfo blas = blas_info();
  if (argc > 1 && argv[1] == std::string("--kernels")) return fmt::print("{}\n", blas.kernels), 0;
  fmt::print("  CPU              {}, {} threads in use\n", machine_name(), thread_count());
  fmt::print("  built for        {}: {}, registers of {} floats\n", T2T_ARCH, level(), Lanes::size);
  fmt::print("  BLAS in use      {}, threads: {}, kernels: {}\n", blas.name, blas.threading,
             blas.kernels);
  fmt::print("  read bandwidth   {:.1f} GB/s\n", read_bandwidth() / 1e9);
  fmt::print("  copy bandwidth   {:.1f} GB/s\n", copy_bandwidth() / 1e9);
  fmt::print("  product peak     {:.0f} GFLOP/s (float32, 1024 x 1024 x 1024)\n",
             product_peak() / 1e9);
}
