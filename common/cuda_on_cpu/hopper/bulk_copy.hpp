// Copies of whole tiles between global and shared memory, which a GPU's hardware carries out beside
// the threads (TMA, sm_90 and later). The stand-in lets a copy land when no thread can go on, as
// late as possible; in a random order also earlier, and several in any order. A tile holds NaN from
// the issue of a copy into it until the copy has landed.
#pragma once

#include "cuda_on_cpu/half_types.hpp"
#include "cuda_on_cpu/hopper/mbarrier.hpp"
#include "cuda_on_cpu/hopper/tensor_map.hpp"
#include "cuda_on_cpu/stand_in.hpp"

namespace t2t {

/// The first token of a box, its head, and its sequence.
struct BoxAt {
  int token, head, sequence;
};

/// Issued by one thread: copies a box to `tile`, which begins at a multiple of 1024 bytes of
/// dynamic shared memory. Tokens outside of the tensor become zeros, and all bytes of the box land
/// at the barrier.
void load_box(__nv_bfloat16* tile, const TensorMap& map, BoxAt at, Mbarrier& full,
              stand_in::Place place = stand_in::Place::current());

/// Issued by one thread: copies a tile to global memory, without the tokens outside of the tensor.
void store_box(const TensorMap& map, BoxAt at, const __nv_bfloat16* tile,
               stand_in::Place place = stand_in::Place::current());
/// Makes one group of the stores that this thread has issued since its last commit.
void commit_stores();

namespace stand_in {
void wait_for_stores(int pending);
}

/// Waits until at most `Pending` of this thread's groups still read their tiles.
template <int Pending>
void wait_for_stores_read() {
  stand_in::wait_for_stores(Pending);
}

/// Each thread that has written to a tile calls this, before a barrier, so that a store or a
/// product of matrices may read the tile (fence.proxy.async). With T2T_PROXIES=1 the stand-in
/// reports who forgot it.
void fence_async();

}  // namespace t2t
