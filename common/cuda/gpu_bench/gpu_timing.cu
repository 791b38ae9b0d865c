#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <vector>

#include "cuda/device.hpp"
#include "cuda/gpu_bench/cublas_handle.hpp"
#include "cuda/gpu_bench/gpu_timing.hpp"
#include "cuda/kernel.hpp"
#include "cuda/tensor_core.hpp"

namespace t2t {

namespace {

constexpr unsigned block = 256;
dim3 blocks(std::size_t count) { return dim3(unsigned((count + block - 1) / block)); }

__global__ void wait_kernel(long nanoseconds) {
  long begin, now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(begin));
  do asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  while (now - begin < nanoseconds);
}

__global__ void copy_kernel(const uint4* from, uint4* to, std::size_t count) {
  const std::size_t i = std::size_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) to[i] = from[i];
}

__global__ void fill_kernel(uint4* to, std::size_t count, unsigned value) {
  const std::size_t i = std::size_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) to[i] = make_uint4(value, value, value, value);
}

/// Reads all, four loads in flight a thread, and writes nothing (the sum is never this number).
__global__ void read_kernel(const uint4* from, std::size_t count, unsigned* out) {
  const std::size_t step = std::size_t(gridDim.x) * blockDim.x;
  unsigned sum = 0;
  std::size_t i = std::size_t(blockIdx.x) * blockDim.x + threadIdx.x;
  for (; i + 3 * step < count; i += 4 * step) {
    const uint4 a = from[i], b = from[i + step], c = from[i + 2 * step], d = from[i + 3 * step];
    sum += a.x ^ a.y ^ a.z ^ a.w ^ b.x ^ b.y ^ b.z ^ b.w;
    sum += c.x ^ c.y ^ c.z ^ c.w ^ d.x ^ d.y ^ d.z ^ d.w;
  }
  for (; i < count; i += step) sum += from[i].x ^ from[i].y ^ from[i].z ^ from[i].w;
  if (sum == 0x12345678u) *out = sum;
}
void launch_read(const DeviceBuffer<uint4>& from, DeviceBuffer<unsigned>& out) {
  T2T_LAUNCH(read_kernel, dim3(unsigned(8 * multiprocessors())), dim3(block), 0, from.data(),
             from.size(), out.data());
}

constexpr int mma_chains = 8, mma_steps = 512, mma_warps = 8;

/// Two bf16 numbers whose sizes lie between 0.5 and 1, of many different bits: with numbers that
/// are all alike the card takes less power, and its clock is higher than real work lets it be.
__device__ uint32_t two_numbers(uint32_t seed) {
  const uint32_t bits = (seed + 1) * 2654435761u;
  return 0x3f003f00u | ((bits ^ bits >> 13) & 0x807f807fu);
}

/// Each warp multiplies fragments in registers again and again; its products depend on earlier ones
/// only every mma_chains instructions.
__global__ void __launch_bounds__(32 * mma_warps) mma_kernel(float* out) {
  uint32_t a[4], b[mma_chains][2];
  for (int i = 0; i < 4; ++i) a[i] = two_numbers(threadIdx.x * 4 + i);
  for (int i = 0; i < 2 * mma_chains; ++i)
    b[i / 2][i % 2] = two_numbers(4096 + threadIdx.x * 2 * mma_chains + i);
  float sums[mma_chains][4] = {};
  for (int step = 0; step < mma_steps; ++step)
#pragma unroll
    for (int chain = 0; chain < mma_chains; ++chain)
      mma_16x8x16(sums[chain], a, b[chain][0], b[chain][1]);
  float sum = 0;
  for (int chain = 0; chain < mma_chains; ++chain)
    for (int i = 0; i < 4; ++i) sum += sums[chain][i];
  if (sum == 0.123456789f) *out = sum;  // hardly ever; what counts is that the sums are used
}

template <class Number>
DeviceBuffer<Number> not_all_alike(std::size_t count) {
  std::vector<Number> numbers(count);
  unsigned state = 1;  // not zeros: the card's power, and so its clock, depends on the data
  for (Number& x : numbers)
    x = Number(float(state = state * 1664525u + 1013904223u) / 2147483648.0f - 1);
  return DeviceBuffer<Number>{std::span<const Number>(numbers)};
}

}  // namespace

Times time_calls(const std::function<void()>& work, const std::function<void()>& before) {
  using Clock = std::chrono::steady_clock;
  const auto milliseconds_since = [](Clock::time_point start) {
    return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
  };
  for (const auto start = Clock::now(); milliseconds_since(start) < 150; synchronize()) work();
  EventTimer timer;
  std::vector<double> times;
  for (const auto start = Clock::now(); times.size() < 10 || milliseconds_since(start) < 300;) {
    if (before) before();
    T2T_LAUNCH(wait_kernel, dim3(1), dim3(1), 0, 200'000L);
    timer.start();
    work();
    times.push_back(timer.stop_ms());
  }
  std::ranges::sort(times);
  return {times.front(), times[times.size() / 2], times[times.size() * 9 / 10]};
}

std::size_t free_device_memory() {
  std::size_t free = 0, all = 0;
  T2T_CUDA_CHECK(cudaMemGetInfo(&free, &all));
  return free;
}

double copy_speed(std::size_t bytes, bool flushed) {
  const std::size_t count = bytes / sizeof(uint4);
  DeviceBuffer<uint4> from(count), to(count);
  const auto copy = [&] {
    T2T_LAUNCH(copy_kernel, blocks(count), dim3(block), 0, from.data(), to.data(), count);
  };
  const Times times = flushed ? time_calls(copy, flush_l2) : time_calls(copy);
  return 2.0 * double(count * sizeof(uint4)) / (times.median / 1000);
}

double read_speed() {
  const DeviceBuffer<uint4> from((std::size_t(2) << 30) / sizeof(uint4));
  DeviceBuffer<unsigned> out(1);
  const Times times = time_calls([&] { launch_read(from, out); });
  return double(from.size() * sizeof(uint4)) / (times.median / 1000);
}

void flush_l2() {
  const std::size_t count = (std::size_t(256) << 20) / sizeof(uint4);
  static DeviceBuffer<uint4> written(count), read(count);
  static DeviceBuffer<unsigned> out(1);
  T2T_LAUNCH(fill_kernel, blocks(count), dim3(block), 0, written.data(), count, 1u);
  launch_read(read, out);
}

double mma_peak() {
  DeviceBuffer<float> out(1);
  const int grid = 4 * multiprocessors();
  const Times times = time_calls(
      [&] { T2T_LAUNCH(mma_kernel, dim3(unsigned(grid)), dim3(32 * mma_warps), 0, out.data()); });
  const double products = double(grid) * mma_warps * mma_steps * mma_chains;
  return products * 2 * 16 * 8 * 16 / (times.median / 1000);
}

#ifdef T2T_CUBLAS

bool has_cublas() { return true; }

static double product_speed(cudaDataType_t type, const void* a, const void* b, void* out, int n) {
  const float one = 1, zero = 0;
  const Times times = time_calls([&] {
    check_cublas(cublasGemmEx(cublas_handle(), CUBLAS_OP_T, CUBLAS_OP_N, n, n, n, &one, a, type, n,
                              b, type, n, &zero, out, type, n, CUBLAS_COMPUTE_32F,
                              CUBLAS_GEMM_DEFAULT));
  });
  return 2.0 * n * n * n / (times.median / 1000);
}

double matrix_peak() {
  const int n = 8192;
  const auto a = not_all_alike<bf16>(std::size_t(n) * n), b = not_all_alike<bf16>(a.size());
  DeviceBuffer<bf16> out(a.size());
  return product_speed(CUDA_R_16BF, a.data(), b.data(), out.data(), n);
}

double float_matrix_peak() {
  const int n = 8192;
  const auto a = not_all_alike<float>(std::size_t(n) * n), b = not_all_alike<float>(a.size());
  DeviceBuffer<float> out(a.size());
  return product_speed(CUDA_R_32F, a.data(), b.data(), out.data(), n);
}

#else

bool has_cublas() { return false; }
double matrix_peak() { throw std::runtime_error("this program was built without cuBLAS"); }
double float_matrix_peak() { throw std::runtime_error("this program was built without cuBLAS"); }

#endif

}  // namespace t2t
