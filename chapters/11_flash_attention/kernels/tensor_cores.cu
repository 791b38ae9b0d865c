// Rung 3: both products on the tensor cores, of bf16 elements with float32 sums. A block is 4 warps
// of 16 queries. Weights pass from the first product to the second in the registers they are in.
//
// Changed from rung 2: one mma.m16n8k16 does 4096 FLOPs; on an H100 the tensor cores do some 9
// times as many a second as float32 units. Numbers take half as many bytes. Weights are rounded to
// bf16 (relative error up to 2^-8) for the second product; their sum is not. Keys and values are
// read from shared memory by plain reads of 2 and 4 bytes, and each tile is waited for: rung 4
// improves both.
// Measured: up to 129 TFLOP/s on an H100 at D = 128.
#include "11_flash_attention/kernels/fragments.hpp"
#include "11_flash_attention/kernels/kernels.hpp"

namespace t2t {

namespace {

constexpr int warps = 4, tile_queries = 16 * warps, tile_keys = 64;
constexpr int threads = 32 * warps;
// How many blocks the registers of a multiprocessor must have room for.
#if defined(__CUDA_ARCH__) && \
    (__CUDA_ARCH__ == 860 || __CUDA_ARCH__ == 890 || __CUDA_ARCH__ >= 1200)
constexpr int blocks = 2;  // 100 KiB
#else
constexpr int blocks = 3;
#endif

/// Loads a tile of rows from row `first` of a head. Rows from `rows` on are not read but set to 0.
/// Rows lie D + 8 elements apart, so that one column of 8 rows is in 8 different sets of banks.
template <int D>
__device__ void load_tile(bf16* shared, const bf16* head, long stride, int first, int rows) {
  for (int i = threadIdx.x; i < tile_keys * D / 8; i += threads) {
    const int r = i / (D / 8), d = i % (D / 8) * 8;
    uint4 x = make_uint4(0, 0, 0, 0);
    if (first + r < rows) x = *reinterpret_cast<const uint4*>(head + (first + r) * stride + d);
    *reinterpret_cast<uint4*>(shared + r * (D + 8) + d) = x;
  }
}

/// scores [16, 64] += q·kᵀ. For a matrix b [16, 8] each lane brings pairs of channels of one key.
template <int D>
__device__ void multiply_keys(float (&scores)[8][4], const uint32_t (&q)[D / 16][4],
                              const bf16* k) {
  const int key = threadIdx.x % 32 / 4, channel = threadIdx.x % 4 * 2;
#pragma unroll
  for (int n = 0; n < tile_keys / 8; ++n)
    for (int c = 0; c < D / 16; ++c) {
      const bf16* at = k + (8 * n + key) * (D + 8) + 16 * c + channel;
      mma_16x8x16(scores[n], q[c], *reinterpret_cast<const uint32_t*>(at),
                  *reinterpret_cast<const uint32_t*>(at + 8));
    }
}

/// The elements of one column in two rows, `stride` apart, packed into one register.
__device__ __forceinline__ uint32_t load_column(const bf16* at, int stride) {
  const auto* numbers = reinterpret_cast<const uint16_t*>(at);
  return numbers[0] | uint32_t(numbers[stride]) << 16;
}

/// mean [16, D] += weights·v. Here each lane brings pairs of keys of one channel: the pair is one
/// column in two neighbouring rows.
template <int D>
__device__ void multiply_values(float (&mean)[D / 8][4], const float (&weights)[8][4],
                                const bf16* v) {
  const int key = threadIdx.x % 4 * 2, channel = threadIdx.x % 32 / 4;
#pragma unroll
  for (int s = 0; s < tile_keys / 16; ++s) {
    uint32_t a[4];
    pack_weights(a, weights[2 * s], weights[2 * s + 1]);
    for (int n = 0; n < D / 8; ++n) {
      const bf16* at = v + (16 * s + key) * (D + 8) + 8 * n + channel;
      mma_16x8x16(mean[n], a, load_column(at, D + 8), load_column(at + 8 * (D + 8), D + 8));
    }
  }
}

// [kernel]
/// The grid is [queries, H, B].
template <int D>
__global__ void __launch_bounds__(threads, blocks)
    tensor_cores(AttentionCall<bf16> call, float scale) {
  __shared__ __align__(16) bf16 k[tile_keys * (D + 8)], v[tile_keys * (D + 8)];
  const int b = blockIdx.z, h = blockIdx.y, g = h / (call.H / call.G);
  const bf16* keys = row_of(call.k, call.k_strides, b, 0, g);
  const bf16* values = row_of(call.v, call.v_strides, b, 0, g);

  // This lane's two queries, how many keys they see, and its part of the matrices a, in registers.
  const int first_query = blockIdx.x * tile_queries, warp = threadIdx.x / 32;
  const int t[2] = {first_query + 16 * warp + int(threadIdx.x) % 32 / 4,
                    first_query + 16 * warp + int(threadIdx.x) % 32 / 4 + 8};
  const int seen[2] = {keys_seen(call, t[0]), keys_seen(call, t[1])};
  const bf16* const rows_of_q[2] = {
      t[0] < call.T ? row_of(call.q, call.q_strides, b, t[0], h) : nullptr,
      t[1] < call.T ? row_of(call.q, call.q_strides, b, t[1], h) : nullptr};
  uint32_t q[D / 16][4];
  for (int c = 0; c < D / 16; ++c) load_rows(q[c], rows_of_q, 16 * c);

  OnlineRows rows;
  float mean[D / 8][4] = {};
  const int seen_by_last = keys_seen(call, min(first_query + tile_queries, call.T) - 1);
  const int seen_by_first = keys_seen(call, first_query);
  for (int first = 0; first < seen_by_last; first += tile_keys) {
    __syncthreads();  // all threads are done with the previous tile
    load_tile<D>(k, keys, call.k_strides.token, first, call.S);
    load_tile<D>(v, values, call.v_strides.token, first, call.S);
    __syncthreads();  // the new tile is complete
    float scores[tile_keys / 8][4] = {};
    multiply_keys<D>(scores, q, k);
    if (first + tile_keys > seen_by_first) mask_scores(scores, first, seen);
    online_softmax(scores, mean, rows, scale);
    multiply_values<D>(mean, scores, v);
  }

  for (int half = 0; half < 2; ++half) {
    const float sum = whole_sum(rows, half);
    if (t[half] >= call.T) continue;
    bf16* out = row_of(call.out, call.out_strides, b, t[half], h) + threadIdx.x % 4 * 2;
    for (int n = 0; n < D / 8; ++n)
      *reinterpret_cast<uint32_t*>(out + 8 * n) =
          pack_bf16(mean[n][2 * half] / sum, mean[n][2 * half + 1] / sum);
  }
}
// [/kernel]

template <int D>
void launch(const AttentionCall<bf16>& call) {
  const dim3 grid((call.T + tile_queries - 1) / tile_queries, call.H, call.B);
  T2T_LAUNCH(tensor_cores<D>, grid, dim3(threads), 0, call, scale_log2(D));
}

}  // namespace

void attend_tensor_cores(const AttentionCall<bf16>& call) {
  expect_tiles(call);
  call.D == 64 ? launch<64>(call) : launch<128>(call);
}

}  // namespace t2t
