// What the threads of a block share: memory, barriers, atomics, copies.
#include "cuda/async_copy.hpp"
#include "cuda/device.hpp"
#include "cuda/kernel.hpp"
#include "features.hpp"
#include "uploaded.hpp"

namespace t2t {
namespace {

__global__ void write_places(int* out) {
  const unsigned inside = threadIdx.y * blockDim.x + threadIdx.x;
  out[blockIdx.x * blockDim.x * blockDim.y + inside] =
      static_cast<int>(100 * blockIdx.x + 10 * threadIdx.y + threadIdx.x);
}

__global__ void reverse(const float* x, float* out) {
  __shared__ float tile[32];
  tile[threadIdx.x] = x[blockIdx.x * 32 + threadIdx.x];
  __syncthreads();
  out[blockIdx.x * 32 + threadIdx.x] = tile[31 - threadIdx.x];
}

__global__ void reverse_fours(const float* x, float* out) {
  T2T_DYNAMIC_SHARED(float4, tile);
  tile[threadIdx.x] = reinterpret_cast<const float4*>(x)[threadIdx.x];
  __syncthreads();
  const float4 four = tile[threadIdx.x];
  reinterpret_cast<float4*>(out)[threadIdx.x] = make_float4(four.w, four.z, four.y, four.x);
}

__global__ void count(float* out) {
  __shared__ int ones, largest, flag, changed;
  __shared__ float halves;
  if (threadIdx.x == 0) ones = largest = flag = changed = 0, halves = 0;
  __syncthreads();
  atomicAdd(&ones, 1);
  atomicMax(&largest, static_cast<int>(threadIdx.x * 7 % 64));
  atomicAdd(&halves, 0.5f);
  if (atomicCAS(&flag, 0, 1) == 0) atomicAdd(&changed, 1);
  __syncthreads();
  if (threadIdx.x > 0) return;
  out[0] = static_cast<float>(ones);
  out[1] = static_cast<float>(largest);
  out[2] = halves;
  out[3] = static_cast<float>(changed);
}

__global__ void add_in_the_last(int* numbers, unsigned* counted, int* out) {
  T2T_DYNAMIC_SHARED(bool, is_last);
  numbers[64 * blockIdx.x + threadIdx.x] = static_cast<int>(blockIdx.x);
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    *is_last = atomicAdd(counted, 1u) == gridDim.x - 1;
    if (*is_last) *is_last = atomicExch(counted, 0u) == gridDim.x;
    __threadfence();
  }
  __syncthreads();
  if (!*is_last) return;
  out[threadIdx.x] = 0;
  for (unsigned b = 0; b < gridDim.x; ++b) out[threadIdx.x] += numbers[64 * b + 63 - threadIdx.x];
}

// Warps 0 and 1 meet at barrier 1, warps 2 and 3 at barrier 2; of each pair the first writes.
__global__ void hand_on(int* out) {
  __shared__ int box[2][32];
  const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32, pair = warp / 2;
  if (warp % 2 == 0) box[pair][lane] = static_cast<int>(100 * pair + lane);
  barrier_sync(static_cast<int>(1 + pair), 64);
  if (warp % 2 == 1) out[32 * pair + lane] = box[pair][31 - lane];
}

__global__ void take_turns(unsigned* out) {
  __shared__ unsigned next;
  if (threadIdx.x == 0) next = 0;
  __syncthreads();
  out[atomicAdd(&next, 1u)] = threadIdx.x;
}

__global__ void end_early(int* out) {
  __shared__ int seen[64];
  if (threadIdx.x >= 40) return;
  seen[threadIdx.x] = static_cast<int>(threadIdx.x);
  __syncthreads();
  out[threadIdx.x] = seen[39 - threadIdx.x];
}

__global__ void look_at_static(int* out) {
  __shared__ float tile[32];
  out[blockIdx.x * 32 + threadIdx.x] = tile[threadIdx.x] != tile[threadIdx.x];
  tile[threadIdx.x] = 1;
}

template <int Size>
__global__ void look_at_template_static(int* out) {
  __shared__ float tile[Size];
  out[blockIdx.x * 32 + threadIdx.x] = tile[threadIdx.x] != tile[threadIdx.x];
  tile[threadIdx.x] = 1;
}

__global__ void look_at_dynamic(int* out) {
  T2T_DYNAMIC_SHARED(float, tile);
  out[blockIdx.x * 32 + threadIdx.x] = tile[threadIdx.x] != tile[threadIdx.x];
  tile[threadIdx.x] = 1;
}

// Steps of 128 numbers, four a thread; while one is doubled the next is on its way.
__global__ void double_by_stages(const float* x, float* out, int steps, int inside) {
  T2T_DYNAMIC_SHARED(float, stages);  // [2, 128]
  const int at = 4 * static_cast<int>(threadIdx.x);
  const auto fetch = [=](int step) {
    const int from = 128 * step + at;
    if (step < steps) copy_async_16(stages + step % 2 * 128 + at, x + from, from < inside);
    commit_copies();
  };
  fetch(0);
  for (int step = 0; step < steps; ++step) {
    fetch(step + 1);
    wait_for_copies<1>();
    __syncthreads();
    const int mirrored = 127 - static_cast<int>(threadIdx.x);  // that others have fetched
    for (int i = 0; i < 4; ++i) {
      const int j = mirrored - 32 * i;
      out[128 * step + j] = 2 * stages[step % 2 * 128 + j];
    }
    __syncthreads();
  }
}

__global__ void look_before_wait(const float* x, float* out) {
  __shared__ __align__(16) float first[4], second[4];
  first[0] = second[0] = 7;
  copy_async_16(first, x);
  commit_copies();
  copy_async_16(second, x);
  commit_copies();
  out[0] = first[0];
  wait_for_copies<1>();
  out[1] = first[0];
  out[2] = second[0];
  wait_for_copies<0>();
  out[3] = second[0];
}

}  // namespace

std::vector<int> places() {
  DeviceBuffer<int> out(24);
  T2T_LAUNCH(write_places, 2, dim3(4, 3), 0, out.data());
  return out.download();
}

std::vector<float> reversed(const std::vector<float>& x) {
  const auto in = uploaded(x);
  DeviceBuffer<float> out(x.size());
  T2T_LAUNCH(reverse, 2, 32, 0, in.data(), out.data());
  return out.download();
}

std::vector<float> reversed_fours(const std::vector<float>& x) {
  const auto in = uploaded(x);
  DeviceBuffer<float> out(x.size());
  T2T_LAUNCH(reverse_fours, 1, static_cast<unsigned>(x.size() / 4), x.size() * sizeof(float),
             in.data(), out.data());
  return out.download();
}

std::vector<float> atomics() {
  DeviceBuffer<float> out(4);
  T2T_LAUNCH(count, 1, 64, 0, out.data());
  return out.download();
}

std::vector<int> sums_of_the_last(unsigned blocks) {
  auto counted = uploaded(std::vector<unsigned>{0});
  const auto add = [&] {
    DeviceBuffer<int> numbers(64 * blocks), out(64);
    T2T_LAUNCH(add_in_the_last, blocks, 64, sizeof(bool), numbers.data(), counted.data(),
               out.data());
    return out.download();
  };
  add();
  return add();
}

std::vector<int> handed_on() {
  DeviceBuffer<int> out(64);
  T2T_LAUNCH(hand_on, 1, 128, 0, out.data());
  return out.download();
}

std::vector<unsigned> turns() {
  DeviceBuffer<unsigned> out(4);
  T2T_LAUNCH(take_turns, 1, 4, 0, out.data());
  return out.download();
}

std::vector<int> ended_early() {
  DeviceBuffer<int> out(40);
  T2T_LAUNCH(end_early, 1, 64, 0, out.data());
  return out.download();
}

std::vector<int> fresh_shared_is_nan() {
  DeviceBuffer<int> out(3 * 64);
  T2T_LAUNCH(look_at_static, 2, 32, 0, out.data());
  T2T_LAUNCH(look_at_template_static<32>, 2, 32, 0, out.data() + 64);
  T2T_LAUNCH(look_at_dynamic, 2, 32, 32 * sizeof(float), out.data() + 128);
  return out.download();
}

std::vector<float> doubled_by_stages(const std::vector<float>& x, int inside) {
  const auto in = uploaded(x);
  DeviceBuffer<float> out(x.size());
  T2T_LAUNCH(double_by_stages, 1, 32, 256 * sizeof(float), in.data(), out.data(),
             static_cast<int>(x.size() / 128), inside);
  return out.download();
}

std::vector<float> before_and_after_wait() {
  const auto in = uploaded(std::vector<float>{3, 0, 0, 0});
  DeviceBuffer<float> out(4);
  T2T_LAUNCH(look_before_wait, 1, 1, 0, in.data(), out.data());
  return out.download();
}

}  // namespace t2t
