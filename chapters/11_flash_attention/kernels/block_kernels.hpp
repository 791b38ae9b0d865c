// Chapter 08's block on a GPU, by kernels only: LLaMA's choices, one sequence, float32.
//
//   x ← x + attention(norm(x))      x ← x + feed_forward(norm(x))
//
// norm, three products, RoPE, attend_naive (chapter 04), product, sum and norm in one kernel, two
// products, SwiGLU, product, sum. There is no cache yet: a call processes the whole sequence. Only
// host code includes this header, since nvcc should not have to read xtensor's.
#pragma once

#include "03_rope/rope.hpp"
#include "08_block/block_weights.hpp"
#include "cuda/device.hpp"

namespace t2t {

class BlockKernels {
 public:
  /// Uploads the weights and positions 0 … T_max − 1 of the table, and makes room for sequences of
  /// up to T_max tokens. Throws std::invalid_argument as expect_settings, expect_weights and
  /// expect_table do, when T_max is below 1, and when the settings differ from LLaMA's in more than
  /// RoPE's pairing and frequencies: "norm: wanted RMSNorm, got LayerNorm". D must be 64 or 128, as
  /// attend_naive requires.
  BlockKernels(const BlockSettings& settings, const BlockWeights& weights, const RopeTable& table,
               int T_max);

  /// Applies the block to x, [T, C], in device memory. Throws std::invalid_argument unless T is 1
  /// to T_max.
  void run(float* x, int T);

 private:
  void attention(int T);

  BlockSettings settings_;
  int T_max_;
  DeviceBuffer<float> gain_1_, gain_2_;         // [C]
  DeviceBuffer<float> w_q_, w_k_, w_v_, w_o_;   // [H·D, C], [G·D, C], [G·D, C], [C, H·D]
  DeviceBuffer<float> w_gate_, w_up_, w_down_;  // [F, C], [F, C], [C, F]
  DeviceBuffer<float> cos_, sin_;               // [T_max, D/2]
  DeviceBuffer<float> normed_, added_;          // [T_max, C]
  DeviceBuffer<float> q_, k_, v_, heads_;       // [T_max, H·D], k and v [T_max, G·D]
  DeviceBuffer<float> scores_;                  // [H, T_max, T_max]
  DeviceBuffer<float> gate_, up_;               // [T_max, F]
};

}  // namespace t2t
