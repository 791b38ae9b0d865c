// Mistakes with what a Hopper GPU does beside the threads of a block. On a GPU most of them hang,
// or give wrong numbers now and then.
#include <map>
#include <span>

#include "cuda/bulk_copy.hpp"
#include "cuda/device.hpp"
#include "cuda/kernel.hpp"
#include "cuda/warpgroup.hpp"
#include "faults.hpp"

namespace t2t {
namespace {

constexpr int D = 64, rows = 64, tile_bytes = 2 * D * rows;

/// Barrier `full` of one arrival, told to expect so many bytes; a tile is on its way to it.
__device__ void begin_load(Mbarrier& full, bf16* tile, const TensorMap& map, int bytes) {
  if (threadIdx.x == 0) {
    mbarrier_init(full, 1);  // mark: initialization
    mbarrier_init_fence();
    mbarrier_arrive_expect(full, bytes);
    load_box(tile, map, {0, 0, 0}, full);  // mark: load
  }
  __syncthreads();
}

__global__ void mbarrier_forgotten(TensorMap) {
  __shared__ Mbarrier full;
  mbarrier_arrive(full);  // mark: mbarrier_forgotten
}

__global__ void mbarrier_in_registers(TensorMap) {
  Mbarrier full;
  mbarrier_init(full, 1);  // mark: mbarrier_in_registers
}

__global__ void every_thread_arrives(TensorMap) {
  __shared__ Mbarrier full;
  if (threadIdx.x == 0) mbarrier_init(full, 4);
  __syncthreads();
  mbarrier_wait(full, 1);  // nothing to wait for: the phase before the first
  if (threadIdx.x < 4 || threadIdx.x > 8) return;
  for (int i = 0; i < 5; ++i) mbarrier_arrive_expect(full, 16);  // mark: every_thread_arrives
}

__global__ void other_parity(TensorMap map) {
  T2T_DYNAMIC_TILES(bf16, tile);
  __shared__ Mbarrier full;
  begin_load(full, tile, map, tile_bytes);
  mbarrier_wait(full, 0);
  mbarrier_wait(full, 1);  // mark: other_parity
}

__global__ void half_expected(TensorMap map) {
  T2T_DYNAMIC_TILES(bf16, tile);
  __shared__ Mbarrier full;
  begin_load(full, tile, map, tile_bytes / 2);
  mbarrier_wait(full, 0);
}

__global__ void twice_expected(TensorMap map) {
  T2T_DYNAMIC_TILES(bf16, tile);
  __shared__ Mbarrier full;
  begin_load(full, tile, map, 2 * tile_bytes);
  mbarrier_wait(full, 0);  // mark: twice_expected
}

__global__ void load_not_awaited(TensorMap map) {
  T2T_DYNAMIC_TILES(bf16, tile);
  __shared__ Mbarrier full;
  begin_load(full, tile, map, tile_bytes);
}

__global__ void tile_misaligned(TensorMap map) {
  T2T_DYNAMIC_TILES(bf16, tile);
  __shared__ Mbarrier full;
  if (threadIdx.x > 0) return;
  mbarrier_init(full, 1);
  load_box(tile + 64, map, {0, 0, 0}, full);  // mark: tile_misaligned
}

__global__ void tile_past_the_end(TensorMap map) {
  T2T_DYNAMIC_TILES(bf16, tile);
  __shared__ Mbarrier full;
  if (threadIdx.x > 0) return;
  mbarrier_init(full, 1);
  load_box(tile + 4 * rows * D, map, {0, 0, 0}, full);  // mark: tile_past_the_end
}

__global__ void store_not_awaited(TensorMap map) {
  T2T_DYNAMIC_TILES(bf16, tile);
  if (threadIdx.x > 0) return;
  store_box(map, {0, 0, 0}, tile);  // mark: store_not_awaited
  commit_stores();
}

__global__ void store_not_committed(TensorMap map) {
  T2T_DYNAMIC_TILES(bf16, tile);
  if (threadIdx.x > 0) return;
  store_box(map, {0, 0, 0}, tile);  // mark: store_not_committed
  wait_for_stores_read<0>();
}

/// With T2T_PROXIES=1: thread 3's stores are not visible to the copy.
__global__ void fence_forgotten(TensorMap map) {
  T2T_DYNAMIC_TILES(bf16, tile);
  tile[threadIdx.x * 8] = __float2bfloat16(1);
  if (threadIdx.x != 3) fence_async();
  __syncthreads();
  if (threadIdx.x > 0) return;
  store_box(map, {0, 0, 0}, tile);  // mark: fence_forgotten
  commit_stores();
  wait_for_stores_read<0>();
}

/// The descriptor of a tile that has been loaded, to be multiplied by itself.
__device__ std::uint64_t loaded(Mbarrier& full, bf16* tile, const TensorMap& map) {
  begin_load(full, tile, map, tile_bytes);
  mbarrier_wait(full, 0);
  return rows_of_channels(tile);
}

__global__ void products_not_begun(TensorMap map) {
  T2T_DYNAMIC_TILES(bf16, tile);
  __shared__ Mbarrier full;
  const std::uint64_t a = loaded(full, tile, map);
  float sums[8][4];
  multiply<false>(sums, a, a);  // mark: products_not_begun
}

__global__ void products_not_committed(TensorMap map) {
  T2T_DYNAMIC_TILES(bf16, tile);
  __shared__ Mbarrier full;
  const std::uint64_t a = loaded(full, tile, map);
  float sums[8][4];
  begin_products(sums);
  multiply<false>(sums, a, a);  // mark: products_not_committed
  wait_for_products<0>(sums);
}

__global__ void products_not_awaited(TensorMap map) {
  T2T_DYNAMIC_TILES(bf16, tile);
  __shared__ Mbarrier full;
  const std::uint64_t a = loaded(full, tile, map);
  float sums[8][4];
  begin_products(sums);
  multiply<false>(sums, a, a);  // mark: products_not_awaited
  commit_products();
}

__global__ void tile_overwritten(TensorMap map) {
  T2T_DYNAMIC_TILES(bf16, tile);
  __shared__ Mbarrier full;
  const std::uint64_t a = loaded(full, tile, map);
  float sums[8][4];
  begin_products(sums);
  multiply<false>(sums, a, a);  // mark: tile_overwritten
  commit_products();
  tile[threadIdx.x] = __float2bfloat16(9);
  wait_for_products<0>(sums);
}

/// For ThreadSanitizer: nobody waits for the copy before the tile is read.
__global__ void tile_read_early(TensorMap map) {
  T2T_DYNAMIC_TILES(bf16, tile);
  __shared__ Mbarrier full;
  begin_load(full, tile, map, tile_bytes);
  const bf16 first = tile[threadIdx.x];
  mbarrier_wait(full, 0);
  if (threadIdx.x == 0) tile[512] = first;
}

__global__ void one_warp_alone(TensorMap map) {
  T2T_DYNAMIC_TILES(bf16, tile);
  __shared__ Mbarrier full;
  const std::uint64_t a = loaded(full, tile, map);
  float sums[8][4];
  begin_products(sums);
  if (threadIdx.x < 32) multiply<false>(sums, a, a);
  commit_products();
  wait_for_products<0>(sums);
}

__global__ void warps_differ(TensorMap map) {
  T2T_DYNAMIC_TILES(bf16, tile);
  __shared__ Mbarrier full;
  const std::uint64_t a = loaded(full, tile, map);
  float sums[8][4];
  begin_products(sums);
  multiply<false>(sums, a, threadIdx.x < 96 ? a : a + 2);  // mark: warps_differ
  commit_products();
  wait_for_products<0>(sums);
}

__global__ void descriptor_leads_out(TensorMap map) {
  T2T_DYNAMIC_TILES(bf16, tile);
  __shared__ Mbarrier full;
  const std::uint64_t a = loaded(full, tile, map);
  float sums[8][4];
  begin_products(sums);
  multiply<false>(sums, a, a + 4096);  // mark: descriptor_leads_out
  commit_products();
  wait_for_products<0>(sums);
}

__global__ void too_many_registers(TensorMap) {
  if (threadIdx.x < 128) give_registers<96>();
  if (threadIdx.x >= 128) take_registers<240>();  // mark: too_many_registers
}

__global__ void fewer_registers_taken(TensorMap) {
  take_registers<160>();  // mark: fewer_registers_taken
}

__global__ void one_warp_gives(TensorMap) {
  if (threadIdx.x < 32) give_registers<24>();
}

using Kernel = void (*)(TensorMap);
#define NAMED(kernel) \
  { #kernel, kernel }
const std::map<std::string, Kernel> hopper_faults{
    NAMED(mbarrier_forgotten),    NAMED(mbarrier_in_registers),  NAMED(every_thread_arrives),
    NAMED(other_parity),          NAMED(half_expected),          NAMED(twice_expected),
    NAMED(load_not_awaited),      NAMED(tile_misaligned),        NAMED(tile_past_the_end),
    NAMED(store_not_awaited),     NAMED(store_not_committed),    NAMED(fence_forgotten),
    NAMED(products_not_begun),    NAMED(products_not_committed), NAMED(products_not_awaited),
    NAMED(tile_overwritten),      NAMED(tile_read_early),        NAMED(one_warp_alone),
    NAMED(warps_differ),          NAMED(descriptor_leads_out),   NAMED(too_many_registers),
    NAMED(fewer_registers_taken), NAMED(one_warp_gives)};
#undef NAMED

}  // namespace

bool launch_hopper_fault(const std::string& name) {
  const auto found = hopper_faults.find(name);
  if (found == hopper_faults.end()) return false;
  const std::vector<bf16> ones(std::size_t{rows} * D, __float2bfloat16(1));
  const DeviceBuffer<bf16> x{std::span<const bf16>(ones)};
  const HeadRows all{x.data(), 1, rows, 1, D, rows * D, D, D, rows};
  T2T_LAUNCH(found->second, 1, 384, 4 * tile_bytes, tensor_map(all));
  return true;
}

}  // namespace t2t
