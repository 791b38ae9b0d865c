#include "cuda/bulk_copy.hpp"
#include "cuda/device.hpp"
#include "cuda/kernel.hpp"
#include "cuda/tensor_core.hpp"
#include "cuda/warpgroup.hpp"
#include "hopper_features.hpp"
#include "uploaded.hpp"

namespace t2t {
namespace {

__global__ void copy_box(const __grid_constant__ TensorMap from,
                         const __grid_constant__ TensorMap to, BoxAt at, int elements, bf16* out) {
#if T2T_TILES
  T2T_DYNAMIC_TILES(bf16, tile);
  __shared__ Mbarrier full;
  if (threadIdx.x == 0) {
    mbarrier_init(full, 1);
    mbarrier_init_fence();
    mbarrier_arrive_expect(full, 2 * elements);
    load_box(tile, from, at, full);
  }
  __syncthreads();
  mbarrier_wait(full, 0);
  for (int i = static_cast<int>(threadIdx.x); i < elements; i += 32) out[i] = tile[i];
  if (threadIdx.x == 0) {
    store_box(to, at, tile);
    commit_stores();
    wait_for_stores_read<0>();
  }
#endif
}

constexpr int ring_stages = 2, ring_rows = 16;

__global__ void sum_ring(const __grid_constant__ TensorMap map, int steps, float* out) {
#if T2T_TILES
  T2T_DYNAMIC_TILES(bf16, tiles);
  __shared__ Mbarrier full[ring_stages], empty[ring_stages];
  const auto thread = static_cast<int>(threadIdx.x);
  if (thread == 0) {
    for (int s = 0; s < ring_stages; ++s) mbarrier_init(full[s], 1), mbarrier_init(empty[s], 2);
    mbarrier_init_fence();
  }
  __syncthreads();
  const auto tile = [&](int step) { return tiles + step % ring_stages * ring_rows * 64; };
  if (thread >= 64) {
    if (elected()) {
      for (int step = 0; step < steps; ++step) {
        const int s = step % ring_stages;
        if (step >= ring_stages) mbarrier_wait(empty[s], (step / ring_stages - 1) % 2);
        mbarrier_arrive_expect(full[s], 2 * ring_rows * 64);
        load_box(tile(step), map, {step * ring_rows, 0, 0}, full[s]);
      }
    }
    return;
  }
  float sum = 0;
  for (int step = 0; step < steps; ++step) {
    const int s = step % ring_stages;
    mbarrier_wait(full[s], step / ring_stages % 2);
    for (int row = 0; row < ring_rows; ++row) {
      const int chunk = thread / 8 ^ row % 8;
      sum += __bfloat162float(tile(step)[row * 64 + chunk * 8 + thread % 8]);
    }
    __syncwarp();
    if (thread % 32 == 0) mbarrier_arrive(empty[s]);
  }
  out[thread] = sum;
#endif
}

template <int D, int Keys>
__global__ void __launch_bounds__(128, 1)
    multiply_all(const __grid_constant__ TensorMap q_map, const __grid_constant__ TensorMap k_map,
                 float* scores_out, float* means_out) {
#if T2T_WARPGROUPS
  T2T_DYNAMIC_TILES(bf16, q);
  bf16* const k = q + 64 * D;
  __shared__ Mbarrier full;
  if (threadIdx.x == 0) {
    mbarrier_init(full, 1);
    mbarrier_init_fence();
    mbarrier_arrive_expect(full, 2 * D * (64 + Keys));
    load_box(q, q_map, {0, 0, 0}, full);
    load_box(k, k_map, {0, 0, 0}, full);
  }
  __syncthreads();
  mbarrier_wait(full, 0);

  float scores[Keys / 8][4], means[D / 8][4] = {};
  begin_products(scores);
#pragma unroll
  for (int c = 0; c < D / 16; ++c) {
    const std::uint64_t a = rows_of_channels(q) + (c / 4 * 64 * 8 + c % 4 * 2);
    const std::uint64_t b = rows_of_channels(k) + (c / 4 * Keys * 8 + c % 4 * 2);
    if (c == 0) {
      multiply<false>(scores, a, b);
    } else {
      multiply<true>(scores, a, b);
    }
  }
  commit_products();
  wait_for_products<0>(scores);

  std::uint32_t weights[Keys / 16][4];
#pragma unroll
  for (int s = 0; s < Keys / 16; ++s) {
    for (int i = 0; i < 4; ++i) {
      const float(&pairs)[4] = scores[2 * s + i / 2];
      weights[s][i] = pack_bf16(pairs[i % 2 * 2], pairs[i % 2 * 2 + 1]);
    }
  }
  begin_products(means, weights);
#pragma unroll
  for (int s = 0; s < Keys / 16; ++s) {
    multiply(means, weights[s], channels_of_rows(k, Keys) + 128 * s);
  }
  commit_products();
  wait_for_products<0>(means);

  const auto thread = static_cast<int>(threadIdx.x);
  for (int half = 0; half < 2; ++half) {
    const int row = thread / 32 * 16 + thread % 32 / 4 + 8 * half, column = thread % 4 * 2;
    for (int i = 0; i < 2; ++i) {
      for (int n = 0; n < Keys / 8; ++n)
        scores_out[row * Keys + 8 * n + column + i] = scores[n][2 * half + i];
      for (int n = 0; n < D / 8; ++n)
        means_out[row * D + 8 * n + column + i] = means[n][2 * half + i];
    }
  }
#endif
}

__global__ void __launch_bounds__(128, 1)
    read_early(const __grid_constant__ TensorMap map, float* out) {
#ifndef __CUDACC__  // nvcc would insert the wait
  T2T_DYNAMIC_TILES(bf16, tile);
  __shared__ Mbarrier full;
  if (threadIdx.x == 0) {
    mbarrier_init(full, 1);
    mbarrier_init_fence();
    mbarrier_arrive_expect(full, 2 * 64 * 64);
    tile[0] = __float2bfloat16(5);
    fence_async();
    load_box(tile, map, {0, 0, 0}, full);
    out[0] = __bfloat162float(tile[0]);
  }
  __syncthreads();
  mbarrier_wait(full, 0);
  float sums[8][4] = {};
  begin_products(sums);
  multiply<false>(sums, rows_of_channels(tile), rows_of_channels(tile));
  commit_products();
  if (threadIdx.x == 0) out[1] = sums[0][0];
  wait_for_products<0>(sums);
  if (threadIdx.x == 0) out[2] = sums[0][0];
#endif
}

__global__ void __launch_bounds__(384, 1) share_registers(int* out) {
#if T2T_WARPGROUPS
  if (threadIdx.x < 128) {
    give_registers<24>();
  } else {
    take_registers<240>();
  }
  out[threadIdx.x] = 1;
#endif
}

__global__ void hand_over(int* out) {
  __shared__ int numbers[64];
  const auto thread = static_cast<int>(threadIdx.x);
  if (thread < 32) {
    numbers[thread] = thread, numbers[thread + 32] = 2 * thread;
    barrier_arrive(1, 64);
  } else {
    barrier_sync(1, 64);
    out[thread - 32] = numbers[thread - 32];
    out[thread] = numbers[thread];
  }
}

HeadRows plain(const DeviceBuffer<bf16>& x, int T, int D, int box_tokens) {
  return {x.data(), 1, T, 1, D, std::int64_t{T} * D, D, D, box_tokens};
}

template <int D, int Keys>
Products multiplied_all(const DeviceBuffer<bf16>& q, const DeviceBuffer<bf16>& k) {
  DeviceBuffer<float> scores(64 * Keys), means(64 * D);
  T2T_LAUNCH((multiply_all<D, Keys>), 1, 128, 2 * D * (64 + Keys), tensor_map(plain(q, 64, D, 64)),
             tensor_map(plain(k, Keys, D, Keys)), scores.data(), means.data());
  return {scores.download(), means.download()};
}

}  // namespace

CopiedBox copied_box(const std::vector<bf16>& x, HeadRows shape, int token, int head,
                     int sequence) {
  const DeviceBuffer<bf16> from = uploaded(x), to = uploaded(std::vector<bf16>(x.size()));
  const int elements = shape.box_tokens * shape.D;
  DeviceBuffer<bf16> tile(static_cast<std::size_t>(elements));
  HeadRows target = shape;
  shape.data = from.data(), target.data = to.data();
  T2T_LAUNCH(copy_box, 1, 32, 2 * elements, tensor_map(shape), tensor_map(target),
             BoxAt{token, head, sequence}, elements, tile.data());
  return {tile.download(), to.download()};
}

std::vector<float> ring_sums(const std::vector<bf16>& x, int T) {
  const DeviceBuffer<bf16> from = uploaded(x);
  DeviceBuffer<float> out(64);
  T2T_LAUNCH(sum_ring, 1, 96, 2 * ring_stages * ring_rows * 64,
             tensor_map(plain(from, T, 64, ring_rows)), (T + ring_rows - 1) / ring_rows,
             out.data());
  return out.download();
}

Products products(const std::vector<bf16>& q, const std::vector<bf16>& k, int D, int keys) {
  const DeviceBuffer<bf16> on_q = uploaded(q), on_k = uploaded(k);
  if (D == 64)
    return keys == 64 ? multiplied_all<64, 64>(on_q, on_k) : multiplied_all<64, 128>(on_q, on_k);
  return keys == 64 ? multiplied_all<128, 64>(on_q, on_k) : multiplied_all<128, 128>(on_q, on_k);
}

std::vector<float> read_too_early() {
  const DeviceBuffer<bf16> x = uploaded(std::vector<bf16>(64 * 64, __float2bfloat16(1)));
  DeviceBuffer<float> out(3);
  T2T_LAUNCH(read_early, 1, 128, 2 * 64 * 64, tensor_map(plain(x, 64, 64, 64)), out.data());
  return out.download();
}

std::vector<int> shared_registers() {
  DeviceBuffer<int> out(384);
  T2T_LAUNCH(share_registers, 1, 384, 0, out.data());
  return out.download();
}

std::vector<int> handed_over() {
  DeviceBuffer<int> out(64);
  T2T_LAUNCH(hand_over, 1, 64, 0, out.data());
  return out.download();
}

}  // namespace t2t
