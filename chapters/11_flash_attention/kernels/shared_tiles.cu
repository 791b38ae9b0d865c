// Rung 2: tiles in shared memory. A block has 64 queries and reads each key and value once for all
// of them. Each of its 256 threads computes 4 x 4 scores of a tile and, of the output, 4 rows of D
// / 16 channels, in registers.
//
// Changed from rung 1: 64 queries share each read of a key from memory, and neighbouring threads
// read neighbouring addresses (coalesced). In shared memory, 8 reads of 16 bytes serve 64
// multiplications in both products. Rows lie D + 4 floats apart, so that 8 threads that read one
// column of 8 rows use 8 different sets of banks.
// Measured: 31 TFLOP/s on an H100 in float32, at D = 128.
#include "11_flash_attention/kernels/kernels.hpp"

namespace t2t {

namespace {

constexpr int tile = 64;      // queries of a block; keys of a step
constexpr int threads = 256;  // 16 x 16: thread (y, x) has queries 4·y + i and keys x + 16·j

/// Loads a tile of rows from row `first` of a head. Rows from `rows` on are not read but set to 0.
template <int D>
__device__ void load_tile(float* shared, const float* head, long stride, int first, int rows) {
  for (int i = threadIdx.x; i < tile * D / 4; i += threads) {
    const int r = i / (D / 4), d = i % (D / 4) * 4;
    float4 x = make_float4(0, 0, 0, 0);
    if (first + r < rows) x = *reinterpret_cast<const float4*>(head + (first + r) * stride + d);
    *reinterpret_cast<float4*>(shared + r * (D + 4) + d) = x;
  }
}

__device__ __forceinline__ float dot(float4 a, float4 b, float sum) {
  return sum + a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w;
}

/// This thread's 4 x 4 scores of q·kᵀ.
template <int D>
__device__ void multiply_keys(float (&scores)[4][4], const float* q, const float* k) {
  const int x = threadIdx.x % 16, y = threadIdx.x / 16;
  for (int d = 0; d < D; d += 4) {
    float4 query[4], key[4];
    for (int i = 0; i < 4; ++i) {
      query[i] = *reinterpret_cast<const float4*>(q + (4 * y + i) * (D + 4) + d);
      key[i] = *reinterpret_cast<const float4*>(k + (x + 16 * i) * (D + 4) + d);
    }
    for (int i = 0; i < 4; ++i)
      for (int j = 0; j < 4; ++j) scores[i][j] = dot(query[i], key[j], scores[i][j]);
  }
}

__device__ __forceinline__ void add_multiple(float a, float4 x, float* to) {
  to[0] += a * x.x, to[1] += a * x.y, to[2] += a * x.z, to[3] += a * x.w;
}

/// Adds this thread's part of weights·v: 4 rows, and channels 4·x to 4·x + 3 of every 64.
template <int D>
__device__ void multiply_values(float (&mean)[4][D / 16], const float* weights, const float* v) {
  const int x = threadIdx.x % 16, y = threadIdx.x / 16;
  for (int s = 0; s < tile; s += 4) {
    float4 weight[4];  // of 4 queries, for 4 keys each
    for (int i = 0; i < 4; ++i)
      weight[i] = *reinterpret_cast<const float4*>(weights + (4 * y + i) * (tile + 4) + s);
    for (int c = 0; c < D / 64; ++c) {
      const float* of_keys = v + s * (D + 4) + 64 * c + 4 * x;
      float4 value[4];
      for (int j = 0; j < 4; ++j)
        value[j] = *reinterpret_cast<const float4*>(of_keys + j * (D + 4));
      for (int i = 0; i < 4; ++i) {
        float* of_query = mean[i] + 4 * c;
        add_multiple(weight[i].x, value[0], of_query);
        add_multiple(weight[i].y, value[1], of_query);
        add_multiple(weight[i].z, value[2], of_query);
        add_multiple(weight[i].w, value[3], of_query);
      }
    }
  }
}

/// The largest x, or the sum, over the 16 threads that have the same queries.
__device__ float row_max(float x) {
  for (int apart = 8; apart > 0; apart /= 2) x = fmaxf(x, __shfl_xor_sync(~0u, x, apart));
  return x;
}
__device__ float row_sum(float x) {
  for (int apart = 8; apart > 0; apart /= 2) x += __shfl_xor_sync(~0u, x, apart);
  return x;
}

template <int D>
constexpr int shared_bytes() {
  return 3 * tile * (D + 4) * int(sizeof(float));
}

// [kernel]
/// The grid is [queries, H, B].
template <int D>
__global__ void __launch_bounds__(threads, 2) shared_tiles(AttentionCall<float> call, float scale) {
  T2T_DYNAMIC_SHARED(float, q);  // [64, D], rows D + 4 apart, as k and v
  float* k = q + tile * (D + 4);
  float* v = k + tile * (D + 4);
  float* weights = k;  // [64, 64], rows 68 apart: overwrites keys that no thread needs any more
  const int x = threadIdx.x % 16, y = threadIdx.x / 16, first_query = blockIdx.x * tile;
  const int b = blockIdx.z, h = blockIdx.y, g = h / (call.H / call.G);
  const float* keys = row_of(call.k, call.k_strides, b, 0, g);
  const float* values = row_of(call.v, call.v_strides, b, 0, g);
  load_tile<D>(q, row_of(call.q, call.q_strides, b, 0, h), call.q_strides.token, first_query,
               call.T);

  float highest[4], sum[4] = {}, mean[4][D / 16] = {};
  for (float& score : highest) score = -INFINITY;
  const int seen_by_last = keys_seen(call, min(first_query + tile, call.T) - 1);
  for (int first = 0; first < seen_by_last; first += tile) {
    __syncthreads();  // all threads are done with the previous tile
    load_tile<D>(k, keys, call.k_strides.token, first, call.S);
    load_tile<D>(v, values, call.v_strides.token, first, call.S);
    __syncthreads();  // the new tile is complete
    float scores[4][4] = {};
    multiply_keys<D>(scores, q, k);
    __syncthreads();  // all threads are done with the keys

    // Every query sees key 0, so the highest score is a number from the first tile on.
    for (int i = 0; i < 4; ++i) {
      const int seen = keys_seen(call, first_query + 4 * y + i);
      float top = highest[i];
      for (int j = 0; j < 4; ++j) {
        scores[i][j] = first + x + 16 * j < seen ? scores[i][j] * scale : -INFINITY;
        top = fmaxf(top, scores[i][j]);
      }
      top = row_max(top);
      const float rescale = expf(highest[i] - top);
      highest[i] = top;
      sum[i] *= rescale;
      for (float& channel : mean[i]) channel *= rescale;
      for (int j = 0; j < 4; ++j) {
        const float weight = expf(scores[i][j] - top);
        sum[i] += weight;  // over this thread's keys; added up after the loop
        weights[(4 * y + i) * (tile + 4) + x + 16 * j] = weight;
      }
    }
    __syncwarp();  // the same warp writes and reads a row of weights
    multiply_values<D>(mean, weights, v);
  }

  for (int i = 0; i < 4; ++i) {
    const int t = first_query + 4 * y + i;
    const float total = row_sum(sum[i]);
    if (t >= call.T) continue;
    float* out = row_of(call.out, call.out_strides, b, t, h) + 4 * x;
    for (int c = 0; c < D / 64; ++c)
      *reinterpret_cast<float4*>(out + 64 * c) =
          make_float4(mean[i][4 * c] / total, mean[i][4 * c + 1] / total,
                      mean[i][4 * c + 2] / total, mean[i][4 * c + 3] / total);
  }
}
// [/kernel]

template <int D>
void launch(const AttentionCall<float>& call) {
  const dim3 grid((call.T + tile - 1) / tile, call.H, call.B);
  T2T_LAUNCH(shared_tiles<D>, grid, dim3(threads), shared_bytes<D>(), call, 1 / sqrtf(float(D)));
}

}  // namespace

void attend_shared_tiles(const AttentionCall<float>& call) {
  expect_tiles(call);
  call.D == 64 ? launch<64>(call) : launch<128>(call);
}

}  // namespace t2t
