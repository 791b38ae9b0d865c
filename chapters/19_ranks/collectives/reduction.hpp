// What all reductions do with a message: add it to what the rank has.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <vector>

#include "tensor.hpp"

namespace t2t {

/// y += x, element by element: of equal lengths.
inline void add_row(Row y, ConstRow x) { std::ranges::transform(y, x, y.begin(), std::plus<>()); }

/// Room for a message of n elements, until the next call. It is kept between calls, since new
/// memory for a long message costs as much time as to receive it.
inline Row room_for(std::size_t n) {
  static thread_local std::vector<float> room;
  if (room.size() < n) room.resize(n);
  return Row(room).first(n);
}

}  // namespace t2t
