// A row that a warp reads once and uses several times. The norms and softmax share this file.
//
// Lane i takes elements i, i + 32, i + 64 …, so that the 32 lanes read 128 neighbouring bytes at a
// time. Up to 1024 elements stay in the lanes' registers, all of whose loads are under way at once.
// A longer row is read again for each use.
#pragma once

#include "cuda/kernel.hpp"

namespace t2t {

class WarpRow {
 public:
  __device__ WarpRow(const float* x, int size) : x_(x), size_(size) {}

  // [each]
  /// work(number, i) for each element i of this lane. It may write to element i of the memory that
  /// the row is read from. It may change `number` if it also writes it there, since a longer row
  /// is read again.
  template <class Work>
  __device__ __forceinline__ void each(Work work) {
    for (int first = threadIdx.x % 32; first < size_; first += 32 * kept) {
      load(first);
#pragma unroll
      for (int n = 0; n < kept; ++n)
        if (const int i = first + 32 * n; i < size_) work(numbers_[n], i);
    }
  }
  // [/each]

 private:
  static constexpr int kept = 32;

  __device__ __forceinline__ void load(int first) {
    if (loaded_ == first) return;
    loaded_ = first;
#pragma unroll
    for (int n = 0; n < kept; ++n)
      if (const int i = first + 32 * n; i < size_) numbers_[n] = x_[i];
  }

  const float* x_;
  int size_, loaded_ = -1;
  float numbers_[kept];
};

}  // namespace t2t
