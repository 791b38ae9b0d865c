// Products of matrices by a warpgroup, four warps (wgmma, sm_90 only): 64 rows of a, by 16
// channels, times N columns of b. b, and usually a, is read from tiles in shared memory
// (tensor_map.hpp says how they lie), beside the threads: from the product's issue until the wait
// for it. The stand-in computes the product at the wait. Until then the sums are NaN, and whatever
// the product reads must not change; a change is a fault, with the place of the issue.
#pragma once

#include <cstdint>

#include "cuda_on_cpu/half_types.hpp"
#include "cuda_on_cpu/stand_in.hpp"

namespace t2t {
namespace stand_in {

/// One lane's part of a product.
struct ProductCall {
  float* sums;  // N/8 by 4
  int N;
  const std::uint32_t* a_registers;  // null: a lies in shared memory
  std::uint64_t a, b;                // descriptors
  bool adds, transposed;
};
void issue_product(const ProductCall& call, const Place& place);
void begin_products(const Place& place);
void wait_for_products(int pending, const Place& place);
void set_registers(int registers, bool more, const Place& place);
std::uint64_t describe(const __nv_bfloat16* tile, unsigned leading_bytes, unsigned stride_bytes,
                       const Place& place);

}  // namespace stand_in

/// Whether this lane is the one of its warp that issues copies.
bool elected(stand_in::Place place = stand_in::Place::current());

/// setmaxnreg: all threads of a warpgroup give registers back to their block, or wait until the
/// block has enough of them. Afterwards each thread has `Registers`.
template <int Registers>
void give_registers(stand_in::Place place = stand_in::Place::current()) {
  static_assert(Registers % 8 == 0 && Registers >= 24 && Registers <= 256);
  stand_in::set_registers(Registers, false, place);
}
template <int Registers>
void take_registers(stand_in::Place place = stand_in::Place::current()) {
  static_assert(Registers % 8 == 0 && Registers >= 24 && Registers <= 256);
  stand_in::set_registers(Registers, true, place);
}

/// The descriptor of a tile whose rows are the product's rows (of a) or columns (of b), and whose
/// 64 channels are summed over. 16 channels further on, it is 2 more; a tile of R rows further,
/// 8·R.
inline std::uint64_t rows_of_channels(const __nv_bfloat16* tile,
                                      stand_in::Place place = stand_in::Place::current()) {
  return stand_in::describe(tile, 16, 1024, place);
}
/// The descriptor of a tile of `rows` rows that are summed over, and whose channels are the columns
/// of b. 16 rows further on, it is 128 more.
inline std::uint64_t channels_of_rows(const __nv_bfloat16* tile, int rows,
                                      stand_in::Place place = stand_in::Place::current()) {
  return stand_in::describe(tile, 128 * static_cast<unsigned>(rows), 1024, place);
}

/// Before the first product after the sums, or a in registers, were touched by anything else. Names
/// these arrays.
template <class Sums>
void begin_products(Sums&, stand_in::Place place = stand_in::Place::current()) {
  stand_in::begin_products(place);
}
template <class Sums, class More>
void begin_products(Sums&, More&, stand_in::Place place = stand_in::Place::current()) {
  stand_in::begin_products(place);
}

/// sums = a·bᵀ, or sums += a·bᵀ if Adds; 16 channels of both.
template <bool Adds, int Blocks>
void multiply(float (&sums)[Blocks][4], std::uint64_t a, std::uint64_t b,
              stand_in::Place place = stand_in::Place::current()) {
  stand_in::issue_product({sums[0], 8 * Blocks, nullptr, a, b, Adds, false}, place);
}
/// sums += a·b with a in registers, as mma_16x8x16 has it, and 16 rows of b.
template <int Blocks>
void multiply(float (&sums)[Blocks][4], const std::uint32_t (&a)[4], std::uint64_t b,
              stand_in::Place place = stand_in::Place::current()) {
  stand_in::issue_product({sums[0], 8 * Blocks, a, 0, b, true, true}, place);
}

/// Makes one group of the products that this warp has issued since its last commit.
void commit_products(stand_in::Place place = stand_in::Place::current());

/// Waits until at most `Pending` groups are pending. Names the arrays that may be read from then
/// on.
template <int Pending, class Sums>
void wait_for_products(Sums&, stand_in::Place place = stand_in::Place::current()) {
  stand_in::wait_for_products(Pending, place);
}
template <int Pending, class Sums, class More>
void wait_for_products(Sums&, More&, stand_in::Place place = stand_in::Place::current()) {
  stand_in::wait_for_products(Pending, place);
}

}  // namespace t2t
