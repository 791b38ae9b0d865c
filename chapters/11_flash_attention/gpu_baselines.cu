#include <algorithm>
#include <stdexcept>
#include <vector>

#include "04_causal_attention/warp_reduce.hpp"
#include "11_flash_attention/gpu_baselines.hpp"
#include "cuda/device.hpp"

#ifdef T2T_CUBLAS
#include <cublas_v2.h>
#endif

namespace t2t {

namespace {

__global__ void copy_kernel(const uint4* from, uint4* to, std::size_t count) {
  const std::size_t i = std::size_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) to[i] = from[i];
}

__global__ void fill_kernel(uint4* to, std::size_t count, unsigned value) {
  const std::size_t i = std::size_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) to[i] = make_uint4(value, value, value, value);
}

/// weights = softmax(scale · scores). Each warp handles one row [S].
__global__ void softmax_kernel(const float* scores, bf16* weights, std::size_t rows, int S,
                               float scale) {
  const std::size_t r = std::size_t(blockIdx.x) * (blockDim.x / 32) + threadIdx.x / 32;
  if (r >= rows) return;
  const float* row = scores + r * S;
  float highest = -INFINITY, sum = 0;
  for (int s = threadIdx.x % 32; s < S; s += 32) highest = fmaxf(highest, row[s]);
  highest = warp_max(highest);
  for (int s = threadIdx.x % 32; s < S; s += 32) sum += expf(scale * (row[s] - highest));
  const float share = 1 / warp_sum(sum);
  for (int s = threadIdx.x % 32; s < S; s += 32)
    weights[r * S + s] = __float2bfloat16(expf(scale * (row[s] - highest)) * share);
}

constexpr unsigned block = 256;
dim3 blocks(std::size_t count) { return dim3(unsigned((count + block - 1) / block)); }

}  // namespace

double median_ms(const std::function<void()>& work, const std::function<void()>& before) {
  EventTimer timer;
  std::vector<double> times;
  for (int i = 0; i < 23; ++i) {
    if (before) before();
    timer.start();
    work();
    times.push_back(timer.stop_ms());
  }
  times.erase(times.begin(), times.begin() + 3);  // the warm-up
  std::nth_element(times.begin(), times.begin() + 10, times.end());
  return times[10];
}

int multiprocessors() {
  int device = 0, count = 0;
  T2T_CUDA_CHECK(cudaGetDevice(&device));
  T2T_CUDA_CHECK(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device));
  return count;
}

double copy_speed() {
  const std::size_t count = (std::size_t(1) << 30) / sizeof(uint4);
  DeviceBuffer<uint4> from(count), to(count);
  const double ms = median_ms([&] {
    T2T_LAUNCH(copy_kernel, blocks(count), dim3(block), 0, from.data(), to.data(), count);
  });
  return 2.0 * count * sizeof(uint4) / (ms / 1000);
}

void flush_l2() {
  static DeviceBuffer<uint4> memory((std::size_t(256) << 20) / sizeof(uint4));
  T2T_LAUNCH(fill_kernel, blocks(memory.size()), dim3(block), 0, memory.data(), memory.size(), 1u);
}

#ifdef T2T_CUBLAS

namespace {

cublasHandle_t handle() {
  static cublasHandle_t made = [] {
    cublasHandle_t handle;
    if (cublasCreate(&handle) != CUBLAS_STATUS_SUCCESS)
      throw std::runtime_error("cublasCreate failed");
    return handle;
  }();
  return made;
}

/// One matrix for each head: `row` numbers from one row to the next, `head` from one head to the
/// next.
struct Stack {
  const void* data;
  long row, head;
};

/// out = a·b for each of `count` heads; with `transposed`, aᵀ·b. Sizes are cuBLAS's, which stores
/// matrices by columns: out is [m, n] there, and a row-major [rows, cols] is its [cols, rows].
void multiply(bool transposed, int m, int n, int k, Stack a, Stack b, Stack out,
              cudaDataType_t out_type, int count) {
  const float one = 1, zero = 0;
  const cublasStatus_t status = cublasGemmStridedBatchedEx(
      handle(), transposed ? CUBLAS_OP_T : CUBLAS_OP_N, CUBLAS_OP_N, m, n, k, &one, a.data,
      CUDA_R_16BF, int(a.row), a.head, b.data, CUDA_R_16BF, int(b.row), b.head, &zero,
      const_cast<void*>(out.data), out_type, int(out.row), out.head, count, CUBLAS_COMPUTE_32F,
      CUBLAS_GEMM_DEFAULT);
  if (status != CUBLAS_STATUS_SUCCESS)
    throw std::runtime_error("cublasGemmStridedBatchedEx failed with status " +
                             std::to_string(int(status)));
}

}  // namespace

bool has_cublas() { return true; }

double matrix_peak() {
  const int n = 8192;
  const std::vector<bf16> random = [] {
    std::vector<bf16> numbers(std::size_t(n) * n);
    unsigned state = 1;  // not zeros: the card's power, and so its clock, depends on the data
    for (bf16& x : numbers)
      x = __float2bfloat16(float(state = state * 1664525u + 1013904223u) / 2147483648.0f - 1);
    return numbers;
  }();
  DeviceBuffer<bf16> a{std::span<const bf16>(random)}, b{std::span<const bf16>(random)};
  DeviceBuffer<bf16> out(random.size());
  const double ms = median_ms([&] {
    multiply(true, n, n, n, {a.data(), n, 0}, {b.data(), n, 0}, {out.data(), n, 0}, CUDA_R_16BF, 1);
  });
  return 2.0 * n * n * n / (ms / 1000);
}

void attend_cublas(const AttentionCall<bf16>& call, float* scores, bf16* weights) {
  const int T = call.T, S = call.S, D = call.D, H = call.H;
  const long head = long(T) * S;
  const auto stack = [](const bf16* data, const Strides& strides, int b) {
    return Stack{data + b * strides.batch, strides.token, strides.head};
  };
  for (int b = 0; b < call.B; ++b)
    multiply(true, S, T, D, stack(call.k, call.k_strides, b), stack(call.q, call.q_strides, b),
             {scores + b * H * head, S, head}, CUDA_R_32F, H);
  const std::size_t rows = std::size_t(call.B) * H * T;
  T2T_LAUNCH(softmax_kernel, dim3(unsigned((rows + 7) / 8)), dim3(256), 0, scores, weights, rows, S,
             1 / sqrtf(float(D)));
  for (int b = 0; b < call.B; ++b)
    multiply(false, D, T, S, stack(call.v, call.v_strides, b), {weights + b * H * head, S, head},
             stack(call.out, call.out_strides, b), CUDA_R_16BF, H);
}

#else

bool has_cublas() { return false; }
double matrix_peak() { throw std::runtime_error("this program was built without cuBLAS"); }
void attend_cublas(const AttentionCall<bf16>&, float*, bf16*) {
  throw std::runtime_error("this program was built without cuBLAS");
}

#endif

}  // namespace t2t
