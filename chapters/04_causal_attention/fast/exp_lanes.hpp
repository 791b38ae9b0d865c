// e^x of a vector register of values that are at most 0, as softmax needs it: a score minus the
// highest score. Chapter 11 also uses it.
#pragma once

#include <bit>
#include <cstdint>

#include "lanes.hpp"

namespace t2t {

/// e^x for x of at most 0, to about 1 unit in the last place; 0 below about −87.68, near which
/// float32 runs out of normal numbers. x = n·ln 2 + r with an integer n, so e^x = 2^n · e^r, and a
/// polynomial gives e^r for |r| ≤ ln 2 / 2. (xsimd::exp takes any x, and takes longer.)
inline Lanes exp_below_0(Lanes x) {
  const Lanes lowest(-127 * 0.69314718f);
  x = xsimd::select(x < lowest, lowest, x);  // NaN is not below it and stays NaN

  // Near 1.5·2^23 floats are integers, so the last bits of the sum are those of n + 127. Moved
  // to where a float keeps its exponent, they make 2^n (and 0 for n = −127).
  constexpr float magic = 0x1.8p23f + 127;
  const Lanes shifted = xsimd::fma(x, Lanes(1.44269504f), Lanes(magic)), n = shifted - magic;
  using Bits = xsimd::batch<std::int32_t>;
  const Lanes power_of_2 = std::bit_cast<Lanes>(std::bit_cast<Bits>(shifted) << 23);

  // ln 2 in two parts, the first short enough for n times it to be exact.
  const Lanes r = xsimd::fma(n, Lanes(2.12194440e-4f), xsimd::fma(n, Lanes(-0.693359375f), x));
  Lanes y = Lanes(1.381459879e-3f);  // fitted to the smallest relative error: 0.05 · 2^-24
  for (const float c :
       {8.368716575e-3f, 4.166838899e-2f, 1.666652113e-1f, 4.999999404e-1f, 1.f, 1.f})
    y = xsimd::fma(y, r, Lanes(c));
  return y * power_of_2;
}

}  // namespace t2t
