// The embedding, RMSNorm to bf16, and what is between the first product of a block and attention:
// RoPE, and the new keys' and values' way into the cache.
//
//   x[t] = table[ids[t]]
//   n = gain · x / √(mean of x² + eps)
//   (a, b) → (a·cos − b·sin, a·sin + b·cos)
//
// A norm and RoPE take a warp for each row (of the stream, or of one head). The angle of a token is
// that of its position in its own sequence, which each warp reads from device memory: the rows of
// several sequences can be in one launch, and the next token's launch has the same arguments.
#include <cstddef>

#include "11_flash_attention/kernels/model/model_kernels.hpp"
#include "11_flash_attention/kernels/model/norm_row.hpp"
#include "11_flash_attention/kernels/tile_checks.hpp"
#include "cuda/kernel.hpp"

namespace t2t {

namespace {

constexpr int warps = 4;      // of a block, one row for each
constexpr int threads = 128;  // of a block of embed_kernel, which copies one row

__global__ void embed_kernel(const bf16* table, const int* ids, int C, float* x) {
  table += std::size_t(ids[blockIdx.x]) * C, x += std::size_t(blockIdx.x) * C;
  for (int c = threadIdx.x; c < C; c += threads) x[c] = __bfloat162float(table[c]);
}

__global__ void rms_norm_to_bf16(NormedRows in, int T, int C) {
  const int t = blockIdx.x * warps + threadIdx.x / 32;
  if (t >= T) return;
  bf16* y = in.scratch + std::size_t(t) * C;
  norm_row(in, t, C, [&](int c, bf16 number) { y[c] = number; });
}

/// What rope_and_append reads and writes, as in launch_rope_and_append.
struct RopeCall {
  const float* qkv;
  TokenRows tokens;
  const float *cos, *sin;
  bool neighbours;
  int T, H, G, D;
  bf16* q;
  LayerCache cache;
};

/// Where head `head` of token t goes, of its H + 2·G heads of queries, keys and values.
__device__ __forceinline__ bf16* place_of(const RopeCall& call, int t, int head) {
  if (head < call.H) return call.q + (std::size_t(t) * call.H + head) * call.D;
  const int g = (head - call.H) % call.G;
  bf16* cache = head < call.H + call.G ? call.cache.keys : call.cache.values;
  const bool shared = call.tokens.places != nullptr;  // one cache for all sequences
  const int place = (shared ? call.tokens.places : call.tokens.positions)[t];
  const std::size_t of_group = std::size_t(shared ? 0 : call.tokens.sequences[t]) * call.G + g;
  return cache + (of_group * call.cache.S + place) * call.D;
}

__global__ void rope_and_append(RopeCall call) {
  const int lane = threadIdx.x % 32, pairs = call.D / 2, heads = call.H + 2 * call.G;
  const long row = long(blockIdx.x) * warps + threadIdx.x / 32;
  if (row >= long(call.T) * heads) return;
  const int t = row / heads, head = row % heads;
  const float* from = call.qkv + row * call.D;
  bf16* to = place_of(call, t, head);
  const bool rotates = head < call.H + call.G;  // values are not rotated
  const std::size_t angle = std::size_t(call.tokens.positions[t]) * pairs;

  for (int i = lane; i < pairs; i += 32) {
    const int first = call.neighbours ? 2 * i : i;
    const int second = call.neighbours ? 2 * i + 1 : i + pairs;
    const float a = from[first], b = from[second];
    const float cos = call.cos[angle + i], sin = call.sin[angle + i];
    to[first] = __float2bfloat16(rotates ? a * cos - b * sin : a);
    to[second] = __float2bfloat16(rotates ? a * sin + b * cos : b);
  }
}

unsigned blocks_for(long rows) { return unsigned((rows + warps - 1) / warps); }

}  // namespace

void launch_embed(const bf16* table, const int* ids, int T, int C, float* x) {
  expect_size("T", T);
  expect_size("C", C);
  expect_device("table", table);
  expect_device("ids", ids);
  expect_device("x", x);
  T2T_LAUNCH(embed_kernel, dim3(unsigned(T)), dim3(threads), 0, table, ids, C, x);
}

void launch_rms_norm(const NormedRows& in, int T, int C) {
  expect_size("T", T);
  expect_size("C", C);
  expect_normed_rows(in);
  T2T_LAUNCH(rms_norm_to_bf16, dim3(blocks_for(T)), dim3(32 * warps), 0, in, T, C);
}

void launch_rope_and_append(const float* qkv, const TokenRows& tokens, const float* cos,
                            const float* sin, RopePairs pairs, int T, int H, int G, int D, bf16* q,
                            const LayerCache& cache) {
  expect_sizes(1, T, cache.S, H, G, D, 0);
  expect_tile_width(D);
  expect_device("qkv", qkv);
  expect_device("positions", tokens.positions);
  expect_device("sequences", tokens.sequences);
  expect_device("cos", cos);
  expect_device("sin", sin);
  expect_device("q", q);
  expect_device("keys", cache.keys);
  expect_device("values", cache.values);
  const RopeCall call = {qkv, tokens, cos, sin,  pairs == RopePairs::neighbours, T, H,
                         G,   D,      q,   cache};
  T2T_LAUNCH(rope_and_append, dim3(blocks_for(long(T) * (H + 2 * G))), dim3(32 * warps), 0, call);
}

}  // namespace t2t
