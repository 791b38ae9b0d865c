// CUDA's scalar functions and atomics for the stand-in. expf, fmaxf, exp2f, INFINITY and the like
// are the C library's. CUDA's fast functions are the exact ones here; on a GPU their last digits
// differ.
#pragma once

#include <math.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>

#include "cuda_on_cpu/grid.hpp"

using std::max;
using std::min;

inline float __expf(float x) noexcept { return expf(x); }
inline float rsqrtf(float x) noexcept { return 1.0f / sqrtf(x); }
inline float __fdividef(float a, float b) { return a / b; }
inline float __uint_as_float(unsigned bits) { return std::bit_cast<float>(bits); }
inline unsigned __float_as_uint(float x) { return std::bit_cast<unsigned>(x); }
inline float __int_as_float(int bits) { return std::bit_cast<float>(bits); }
inline int __float_as_int(float x) { return std::bit_cast<int>(x); }
inline int __popc(unsigned x) { return std::popcount(x); }
template <class T>
T __ldg(const T* from) {
  return *from;
}

// Real atomics with relaxed order, so that ThreadSanitizer does not report them as races, and still
// reports a race on other memory that they are wrongly used to protect.

namespace t2t::stand_in {

/// What the operation returns, which is given *at as an atomic object.
template <class T, class Operation>
T atomically(T* at, Operation operation) {
  before_atomic(at);
  const T result = operation(std::atomic_ref<T>(*at));
  after_atomic(at);
  return result;
}

inline constexpr std::memory_order relaxed = std::memory_order_relaxed;

}  // namespace t2t::stand_in

template <class T>
T atomicAdd(T* at, T value) {
  using namespace t2t::stand_in;
  return atomically(at, [&](auto there) { return there.fetch_add(value, relaxed); });
}

template <class T>
T atomicExch(T* at, T value) {
  using namespace t2t::stand_in;
  return atomically(at, [&](auto there) { return there.exchange(value, relaxed); });
}

template <class T>
T atomicCAS(T* at, T expected, T value) {
  using namespace t2t::stand_in;
  return atomically(at, [&](auto there) {
    there.compare_exchange_strong(expected, value, relaxed);
    return expected;  // or what was there
  });
}

template <class T>
T atomicMax(T* at, T value) {
  using namespace t2t::stand_in;
  return atomically(at, [&](auto there) {
    T before = there.load(relaxed);
    while (before < value && !there.compare_exchange_weak(before, value, relaxed)) {
    }
    return before;
  });
}
