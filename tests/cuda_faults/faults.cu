#include <map>
#include <span>
#include <stdexcept>

#include "cuda/async_copy.hpp"
#include "cuda/device.hpp"
#include "cuda/kernel.hpp"
#include "cuda/tensor_core.hpp"
#include "faults.hpp"

namespace t2t {
namespace {

constexpr unsigned kAll = 0xffffffffu;

__global__ void good(int* out) {
  __shared__ int ready, much[12000];
  if (threadIdx.x == 5) ready = much[11999] = 1;
  __syncthreads();
  if (threadIdx.x == 0) *out = __shfl_sync(1, ready * much[11999], 0);
}

__global__ void empty_kernel() {}

__global__ void much_static_shared(float* x) {
  __shared__ float tile[13000];
  tile[threadIdx.x] = 1;
  *x = tile[0];
}

// Each mistake's line bears the mark by which the tests find it.

__global__ void barrier_in_a_branch(float* x) {
  if (threadIdx.x < 40) __syncthreads();  // mark: barrier_in_a_branch, the lower
  x[threadIdx.x] = 1;
  __syncthreads();  // mark: barrier_in_a_branch
}

__global__ void barrier_and_shuffle(float* x) {
  if (threadIdx.x < 32) {
    __syncthreads();  // mark: barrier_and_shuffle, the barrier
  } else if (threadIdx.x < 40) {
    x[0] = __shfl_sync(kAll, x[0], 0);  // mark: barrier_and_shuffle
  }
}

__global__ void shuffle_without_all(float* x) {
  if (threadIdx.x % 32 < 16)
    x[threadIdx.x] = __shfl_xor_sync(kAll, 1.0f, 1);  // mark: shuffle_without_all
}

__global__ void shuffle_left_out(float*) {
  __shfl_sync(0xffffu, 1, 0);  // mark: shuffle_left_out
}

__global__ void shuffle_from_absent(float*) {
  if (threadIdx.x < 16) __shfl_sync(0xffffu, 1, 20);  // mark: shuffle_from_absent
}

__global__ void shuffle_width(float*) {
  __shfl_sync(kAll, 1, 0, 12);  // mark: shuffle_width
}

__global__ void named_short(float*) {
  if (threadIdx.x < 32) barrier_sync(3, 64);  // mark: named_short
}

__global__ void named_number(float*) {
  barrier_sync(0, 64);  // mark: named_number
}

__global__ void named_half_warp(float*) {
  barrier_sync(1, 48);  // mark: named_half_warp
}

__global__ void named_differing(float*) {
  barrier_sync(1, threadIdx.x < 32 ? 64 : 32);  // mark: named_differing
}

__global__ void misaligned_vector(float* x) {
  const float4 four = *reinterpret_cast<float4*>(x + threadIdx.x);  // mark: misaligned_vector
  x[0] = four.x;
}

__global__ void misaligned_store(float* x) {
  *reinterpret_cast<float4*>(x + threadIdx.x) = make_float4(1, 2, 3, 4);  // mark: misaligned_store
}

__global__ void null_pointer(float*) {
  float* nothing = threadIdx.x == 3 ? nullptr : static_cast<float*>(__builtin_alloca(4));
  *nothing = 1;  // mark: null_pointer
}

__global__ void ldmatrix_misaligned(float*) {
  __shared__ __align__(16) bf16 tile[72 * 8];
  uint32_t r[4];
  ldmatrix_x4(r, tile + 9 * (threadIdx.x % 32));  // mark: ldmatrix_misaligned
}

__global__ void ldmatrix_from_global(float* x) {
  uint32_t r[4];
  ldmatrix_x4_transposed(r, reinterpret_cast<bf16*>(x));  // mark: ldmatrix_from_global
}

__global__ void copy_to_misaligned(float* x) {
  T2T_DYNAMIC_SHARED(float, tile);
  copy_async_16(tile + 1, x);  // mark: copy_to_misaligned
}

__global__ void copy_from_misaligned(float* x) {
  T2T_DYNAMIC_SHARED(float, tile);
  copy_async_16(tile, x + 2);  // mark: copy_from_misaligned
}

__global__ void copy_to_global(float* x) {
  copy_async_16(x, x + 4);  // mark: copy_to_global
}

// What only a sanitizer sees. AddressSanitizer, one past the end:

__global__ void past_static(float* x) {
  __shared__ float tile[64];
  float* next = tile + 1;
  next[threadIdx.x] = 1;
  *x = tile[threadIdx.x];
}

__global__ void past_dynamic(float*) {
  T2T_DYNAMIC_SHARED(float, tile);
  tile[threadIdx.x + 1] = 1;
}

__global__ void past_global(float* x) { x[threadIdx.x + 1] = 1; }

// ThreadSanitizer: races. The first gives the right numbers in the end, in every order of threads.

__global__ void missing_barrier(float* x) {
  __shared__ float sum;
  for (int i = 0; i < 2; ++i) {
    if (threadIdx.x == 0) sum = static_cast<float>(i);
    __syncthreads();
    x[threadIdx.x] = sum;  // and then thread 0 may go on to write before the others have read
  }
}

// All lanes have come to the shuffle, but it does not promise that what they wrote can be read.
__global__ void shuffle_for_a_fence(float* x) {
  __shared__ float tile[64];
  tile[threadIdx.x] = 1;
  __shfl_sync(kAll, 0, 0);
  x[threadIdx.x] = tile[threadIdx.x ^ 1];
}

__global__ void copy_without_barrier(float* x) {
  T2T_DYNAMIC_SHARED(float, tile);
  if (threadIdx.x == 0) copy_async_16(tile, x);
  commit_copies();
  wait_for_copies<0>();
  x[threadIdx.x + 8] = tile[0];
}

// Nobody waits for those who still read a half before the next copy into it is issued. That copy's
// data come two barriers later: a stand-in that wrote only then would see no race.
__global__ void copy_over_readers(float* x) {
  T2T_DYNAMIC_SHARED(float, halves);
  const unsigned thread = threadIdx.x;
  const auto fetch = [=](int step) {
    if (thread < 8) copy_async_16(halves + step % 2 * 32 + 4 * thread, x + 4 * thread);
    commit_copies();
  };
  fetch(0);
  for (int step = 0; step < 4; ++step) {
    fetch(step + 1);
    wait_for_copies<1>();
    __syncthreads();
    if (thread >= 32) x[thread] = halves[step % 2 * 32 + thread - 32];
  }
}

__global__ void into_the_neighbour(float* x) {
  T2T_DYNAMIC_SHARED(float, tile);
  float *first = tile, *second = tile + 32;
  second[threadIdx.x % 32] = 0;
  first[threadIdx.x] = 7;
  *x = second[0];
}

__global__ void lost_update(float* x) { x[0] += 1; }

// The block that is counted last reads what the other wrote. Without fences, being counted says
// nothing of what the other wrote before.
__global__ void count_for_a_fence(float* x) {
  T2T_DYNAMIC_SHARED(float, before);
  if (threadIdx.x < 16) x[1 + 16 * blockIdx.x + threadIdx.x] = 1;
  __syncthreads();
  if (threadIdx.x == 0) *before = atomicAdd(x, 1.0f);
  __syncthreads();
  if (*before == 1 && threadIdx.x < 16) x[33 + threadIdx.x] = x[17 - 16 * blockIdx.x + threadIdx.x];
}

using Kernel = void (*)(float*);
#define NAMED(kernel) \
  { #kernel, kernel }
const std::map<std::string, Kernel> faults{
    NAMED(barrier_in_a_branch), NAMED(barrier_and_shuffle),  NAMED(shuffle_without_all),
    NAMED(shuffle_left_out),    NAMED(shuffle_from_absent),  NAMED(shuffle_width),
    NAMED(named_short),         NAMED(named_number),         NAMED(named_half_warp),
    NAMED(named_differing),     NAMED(misaligned_vector),    NAMED(misaligned_store),
    NAMED(null_pointer),        NAMED(ldmatrix_misaligned),  NAMED(ldmatrix_from_global),
    NAMED(copy_to_misaligned),  NAMED(copy_from_misaligned), NAMED(copy_to_global),
    NAMED(much_static_shared),  NAMED(past_static),          NAMED(past_dynamic),
    NAMED(past_global),         NAMED(missing_barrier),      NAMED(copy_without_barrier),
    NAMED(shuffle_for_a_fence), NAMED(copy_over_readers),    NAMED(into_the_neighbour),
    NAMED(lost_update),         NAMED(count_for_a_fence)};
#undef NAMED

}  // namespace

void launch_fault(const std::string& name) {
  if (launch_hopper_fault(name)) return;
  const auto found = faults.find(name);
  if (found == faults.end()) throw std::invalid_argument("there is no fault '" + name + "'");
  DeviceBuffer<float> x(std::span<const float>(std::vector<float>(64, 0)));
  T2T_LAUNCH(found->second, dim3(2), dim3(64), 64 * sizeof(float), x.data());
}

void launch_sizes(unsigned block_x, unsigned block_z, unsigned grid_x, unsigned grid_y,
                  unsigned shared_bytes) {
  T2T_LAUNCH(empty_kernel, dim3(grid_x, grid_y), dim3(block_x, 1, block_z), shared_bytes);
}

int launch_good() {
  DeviceBuffer<int> out(1);
  T2T_LAUNCH(good, 1, 64, 0, out.data());
  return out.download()[0];
}

}  // namespace t2t
