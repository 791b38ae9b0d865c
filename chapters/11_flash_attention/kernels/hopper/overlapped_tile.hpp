// What rungs 9 and 10 add to rung 8: the tensor cores multiply while exponentials are computed.
//
// Within a warpgroup, the scores of the next step are issued before the means of this one, so that
// the means are still under way while the next softmax is computed. Between the warpgroups, turns
// (ping-pong): each issues its products only after the one before it, so that one warpgroup's
// softmax falls into the other's products.
#pragma once

#include "11_flash_attention/kernels/hopper/key_ring.hpp"

namespace t2t {

/// The turns of `groups` warpgroups, of which this thread's is number `group`. All must take
/// equally many. Uses barriers 1 to groups.
template <int groups>
struct Turns {
  int group;
  /// By every warpgroup, before its first turn: the last one hands the first turn to the first.
  __device__ __forceinline__ void begin() const {
    if (group == groups - 1) pass();
  }
  __device__ __forceinline__ void take() const { barrier_sync(1 + group, 2 * group_threads); }
  __device__ __forceinline__ void pass() const {
    barrier_arrive(1 + (group + 1) % groups, 2 * group_threads);
  }
};

// [tile]
/// The mean of a warpgroup's 64 queries and their sums of weights; q points to the first of their
/// rows. The tile's keys are steps `count`, count + 1, … of the ring. Every warpgroup goes
/// through all steps, also those whose keys its queries do not see, since the others wait for its
/// turns. scores_done is called when the queries are not needed any more.
template <int D, class ScoresDone>
__device__ __forceinline__ void attend_overlapped_tile(float (&mean)[D / 8][4], OnlineRows& rows,
                                                       const bf16* q, const KeyRing<D>& ring,
                                                       int count, int steps, const GroupMask& mask,
                                                       const Turns<RoleSizes<D>::groups>& turns,
                                                       float scale, const ScoresDone& scores_done) {
  using Sizes = RoleSizes<D>;
  const auto stage = [&](int step) { return (count + step) % Sizes::stages; };
  std::uint32_t weights[Sizes::keys / 16][4];
  {
    float scores[Sizes::keys / 8][4];
    ring.wait_for_keys(count);
    turns.take();
    issue_scores<D, Sizes::keys, Sizes::queries>(scores, q, ring.k_tile(stage(0)));
    turns.pass();
    wait_for_products<0>(scores);
    release(ring.barriers.k_empty[stage(0)]);
    mask.apply(scores, 0);
    softmax_step(scores, rows, scale, [](int, float) {});  // the mean is 0
    pack_all(weights, scores);
  }
  if (steps > 1) ring.wait_for_keys(count + 1);
#pragma unroll 1
  for (int step = 1; step < steps; ++step) {
    float scores[Sizes::keys / 8][4];
    turns.take();
    issue_scores<D, Sizes::keys, Sizes::queries>(scores, q, ring.k_tile(stage(step)));
    ring.wait_for_values(count + step - 1);
    issue_mean<D, Sizes::keys>(mean, weights, ring.v_tile(stage(step - 1)));
    turns.pass();
    wait_for_products<1>(scores);  // the means are still under way
    release(ring.barriers.k_empty[stage(step)]);
    mask.apply(scores, step);
    bool rose = false;
    float rescale[2] = {1, 1};
    softmax_step(scores, rows, scale,
                 [&](int half, float factor) { rose = true, rescale[half] = factor; });
    // Also keeps the compiler from moving the wait for the means up, before the softmax.
    if (step + 1 < steps) ring.wait_for_keys(count + step + 1);
    wait_for_products<0>(mean, weights);
    release(ring.barriers.v_empty[stage(step - 1)]);
    pack_all(weights, scores);
    if (rose)
#pragma unroll
      for (int n = 0; n < D / 8; ++n)
        for (int i = 0; i < 4; ++i) mean[n][i] *= rescale[i / 2];
  }
  scores_done();
  ring.wait_for_values(count + steps - 1);
  issue_mean<D, Sizes::keys>(mean, weights, ring.v_tile(stage(steps - 1)));
  wait_for_products<0>(mean, weights);
  release(ring.barriers.v_empty[stage(steps - 1)]);
}
// [/tile]

}  // namespace t2t
