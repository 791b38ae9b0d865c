#include <stdexcept>

#include "04_causal_attention/kernels/warp_reduce.hpp"
#include "11_flash_attention/gpu_bench/gpu_baselines.hpp"
#include "cuda/gpu_bench/cublas_handle.hpp"

namespace t2t {

bool cublas_takes(const AttentionCall<bf16>& c) {
  const auto side_by_side = [&](const Strides& s, int length) {
    return s.token == c.D && s.head == long(length) * c.D && s.batch == c.H * s.head;
  };
  return !c.causal && c.G == c.H && (c.S == 512 || c.S == 1024 || c.S == 2048 || c.S == 4096) &&
         side_by_side(c.q_strides, c.T) && side_by_side(c.out_strides, c.T) &&
         side_by_side(c.k_strides, c.S) && side_by_side(c.v_strides, c.S);
}

#ifdef T2T_CUBLAS

namespace {

constexpr int softmax_warps = 4;

/// weights = softmax(scale · scores). A warp reads a row of 128·Fours scores once, four at a time,
/// and keeps it in registers.
template <int Fours>
__global__ void __launch_bounds__(32 * softmax_warps)
    softmax_kernel(const float* scores, bf16* weights, std::size_t rows, float scale) {
  const std::size_t r = std::size_t(blockIdx.x) * softmax_warps + threadIdx.x / 32;
  if (r >= rows) return;
  const int lane = threadIdx.x % 32;
  const float4* from = reinterpret_cast<const float4*>(scores + r * 128 * Fours) + lane;
  uint2* to = reinterpret_cast<uint2*>(weights + r * 128 * Fours) + lane;
  float4 x[Fours];
  float highest = -INFINITY, sum = 0;
#pragma unroll
  for (int i = 0; i < Fours; ++i) {
    x[i] = from[32 * i];
    highest = fmaxf(highest, fmaxf(fmaxf(x[i].x, x[i].y), fmaxf(x[i].z, x[i].w)));
  }
  const float base = scale * warp_max(highest);
#pragma unroll
  for (int i = 0; i < Fours; ++i) {
    x[i].x = exp2_fast(scale * x[i].x - base), x[i].y = exp2_fast(scale * x[i].y - base);
    x[i].z = exp2_fast(scale * x[i].z - base), x[i].w = exp2_fast(scale * x[i].w - base);
    sum += x[i].x + x[i].y + (x[i].z + x[i].w);
  }
  const float share = 1 / warp_sum(sum);
#pragma unroll
  for (int i = 0; i < Fours; ++i)
    to[32 * i] = make_uint2(pack_bf16(x[i].x * share, x[i].y * share),
                            pack_bf16(x[i].z * share, x[i].w * share));
}

template <int Fours>
void launch_softmax(const float* scores, bf16* weights, std::size_t rows, float scale) {
  T2T_LAUNCH(softmax_kernel<Fours>, dim3(unsigned((rows + softmax_warps - 1) / softmax_warps)),
             dim3(32 * softmax_warps), 0, scores, weights, rows, scale);
}

/// out = a·b for each head of each sequence; with `transposed`, aᵀ·b. Sizes are cuBLAS's, which
/// stores matrices by columns: out is [m, n] there, and a row-major [rows, cols] is its [cols,
/// rows].
void multiply(bool transposed, int m, int n, int k, const bf16* a, const bf16* b, void* out,
              cudaDataType_t out_type, int count) {
  const float one = 1, zero = 0;
  check_cublas(cublasGemmStridedBatchedEx(
      cublas_handle(), transposed ? CUBLAS_OP_T : CUBLAS_OP_N, CUBLAS_OP_N, m, n, k, &one, a,
      CUDA_R_16BF, transposed ? k : m, long(m) * k, b, CUDA_R_16BF, k, long(k) * n, &zero, out,
      out_type, m, long(m) * n, count, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
}

}  // namespace

void attend_cublas(const AttentionCall<bf16>& call, float* scores, bf16* weights) {
  if (!cublas_takes(call)) throw std::invalid_argument("attend_cublas: another kind of call");
  const int T = call.T, S = call.S, D = call.D, heads = call.B * call.H;
  const std::size_t rows = std::size_t(heads) * T;
  const float scale = 1.44269504f / sqrtf(float(D));
  multiply(true, S, T, D, call.k, call.q, scores, CUDA_R_32F, heads);
  if (S == 512) launch_softmax<4>(scores, weights, rows, scale);
  if (S == 1024) launch_softmax<8>(scores, weights, rows, scale);
  if (S == 2048) launch_softmax<16>(scores, weights, rows, scale);
  if (S == 4096) launch_softmax<32>(scores, weights, rows, scale);
  multiply(false, D, T, S, call.v, weights, call.out, CUDA_R_16BF, heads);
}

#else

void attend_cublas(const AttentionCall<bf16>&, float*, bf16*) {
  throw std::runtime_error("this program was built without cuBLAS");
}

#endif

}  // namespace t2t
