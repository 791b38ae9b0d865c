// Functions of a row, a vector register at a time (with xsimd): sums, the largest element, and
// functions such as exp applied to each element.
//
// Without fast-math a compiler may not change the order of a float sum, so it does not use vector
// registers for one; these functions do. When a row's length is not a multiple of a register's, the
// last register is filled up with other values.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <utility>
#include <xsimd/xsimd.hpp>

#include "tensor.hpp"

namespace t2t {

using Lanes = xsimd::batch<float>;

/// Loads the last, partly filled register of a row: count elements, then filler. And stores one.
inline Lanes load_part(const float* from, std::size_t count, float filler) {
  alignas(64) float part[Lanes::size];
  std::fill(std::copy(from, from + count, part), part + Lanes::size, filler);
  return Lanes::load_aligned(part);
}
inline void store_part(Lanes value, float* to, std::size_t count) {
  alignas(64) float part[Lanes::size];
  value.store_aligned(part);
  std::copy(part, part + count, to);
}

/// y[c] = f(x[c], …) for one or several rows x, of y's length. f takes and returns Lanes. y may be
/// one of the rows x.
template <class F, class... Rows>
void map_row(Row y, F f, const Rows&... x) {
  constexpr std::size_t W = Lanes::size, together = 2;  // how many are read before any is written
  std::size_t c = 0;
  for (; c + together * W <= y.size(); c += together * W) {
    Lanes part[together];
    for (std::size_t i = 0; i < together; ++i) part[i] = f(Lanes::load_unaligned(&x[c + i * W])...);
    for (std::size_t i = 0; i < together; ++i) part[i].store_unaligned(&y[c + i * W]);
  }
  for (; c < y.size(); c += W) {
    const std::size_t count = std::min(W, y.size() - c);
    store_part(f(load_part(&x[c], count, 0)...), &y[c], count);
  }
}

/// A row of more elements than this is added up in two halves, so that the error of a sum does not
/// depend on the number of lanes.
constexpr std::size_t longest_run = 1024;

/// How many elements of a row of n belong to its first half: whole runs.
constexpr std::size_t first_half(std::size_t n) {
  return (n / 2 + longest_run - 1) / longest_run * longest_run;
}

/// Combines f(x[0]), f(x[1]) … by join, in any order, beginning with start. join(start, x) must be
/// x, and f(filler) must be start, which is Lanes or several of them. Four registers are combined
/// at a time, since each join has to wait for the result of the one before it.
template <class Folded, class F, class Join>
Folded fold_lanes(ConstRow x, float filler, Folded start, F f, Join join) {
  constexpr std::size_t W = Lanes::size;
  if (x.size() > longest_run) {
    const std::size_t half = first_half(x.size());
    return join(fold_lanes(x.first(half), filler, start, f, join),
                fold_lanes(x.subspan(half), filler, start, f, join));
  }
  Folded a0 = start, a1 = start, a2 = start, a3 = start;
  std::size_t c = 0;
  for (; c + 4 * W <= x.size(); c += 4 * W) {
    a0 = join(a0, f(Lanes::load_unaligned(&x[c])));
    a1 = join(a1, f(Lanes::load_unaligned(&x[c + W])));
    a2 = join(a2, f(Lanes::load_unaligned(&x[c + 2 * W])));
    a3 = join(a3, f(Lanes::load_unaligned(&x[c + 3 * W])));
  }
  for (; c + W <= x.size(); c += W) a0 = join(a0, f(Lanes::load_unaligned(&x[c])));
  if (c < x.size()) a1 = join(a1, f(load_part(&x[c], x.size() - c, filler)));
  return join(join(a0, a1), join(a2, a3));
}

/// The sum of the elements in one register. (xsimd 8 called it hadd.)
template <class Register>
float add_lanes(Register value) {
  if constexpr (requires { reduce_add(value); })
    return reduce_add(value);
  else
    return hadd(value);
}

/// One step of adding up the lanes of two registers. Lane i of the result is lane i plus lane
/// i ^ step, of b where i has the bit `step`, and of a where not.
template <std::size_t step, std::size_t... lane>
Lanes fold_two(Lanes a, Lanes b, std::index_sequence<lane...>) {
  constexpr std::size_t W = Lanes::size;
  const Lanes::register_type x = a, y = b;
  return Lanes(__builtin_shufflevector(x, y, (lane + (lane & step ? W : 0))...)) +
         Lanes(__builtin_shufflevector(x, y, ((lane ^ step) + (lane & step ? W : 0))...));
}

/// Lane s of the result is the sum of all lanes of rows[s], for as many rows as there are lanes.
template <std::size_t step = 1>
Lanes add_lanes_of_each(const Lanes* rows) {
  if constexpr (step == Lanes::size)
    return rows[0];
  else
    return fold_two<step>(add_lanes_of_each<2 * step>(rows),
                          add_lanes_of_each<2 * step>(rows + step),
                          std::make_index_sequence<Lanes::size>());
}

/// The sum of f(x[c]) over c. f(filler) must be 0.
template <class F>
float sum_of(ConstRow x, F f, float filler = 0) {
  return add_lanes(fold_lanes(x, filler, Lanes(0), f, [](Lanes a, Lanes b) { return a + b; }));
}

inline float sum_row(ConstRow x) {
  return sum_of(x, [](Lanes v) { return v; });
}
inline float sum_of_squares(ConstRow x) {
  return sum_of(x, [](Lanes v) { return v * v; });
}

/// The largest element of a row; -infinity for an empty row. A NaN may be lost.
inline float max_row(ConstRow x) {
  constexpr float lowest = -std::numeric_limits<float>::infinity();
  const Lanes most = fold_lanes(
      x, lowest, Lanes(lowest), [](Lanes v) { return v; },
      [](Lanes a, Lanes b) { return xsimd::max(a, b); });
  alignas(64) float lanes[Lanes::size];
  most.store_aligned(lanes);
  return *std::max_element(lanes, lanes + Lanes::size);
}

}  // namespace t2t
