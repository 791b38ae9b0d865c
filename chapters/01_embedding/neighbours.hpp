// Neighbours: which rows of a table point the same way.
//
//   cosine(a, b) = Σ over c of a[c] · b[c] / (|a| · |b|)      1: same way, 0: unrelated, -1:
//   opposite
//
// Lengths don't count, directions do. Two rows of a random table have a cosine of about 0, with
// deviation 1/sqrt(C). For looking at tables only: no model needs it.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <vector>

#include "tensor.hpp"

namespace t2t {

/// 0 when either is a row of zeros, which points nowhere.
inline double cosine(ConstRow a, ConstRow b) {  // [C], [C]
  const auto dot = [](ConstRow p, ConstRow q) {
    return std::inner_product(p.begin(), p.end(), q.begin(), 0.0);
  };
  const double lengths = std::sqrt(dot(a, a) * dot(b, b));
  return lengths > 0 ? dot(a, b) / lengths : 0;
}

struct Neighbour {
  double cosine;
  int id;
  auto operator<=>(const Neighbour&) const = default;
};

/// Every other row of the table, the nearest to row id first.
inline std::vector<Neighbour> neighbours(ConstMatrix table, std::size_t id) {  // [V, C]
  std::vector<Neighbour> found;                                                // [V - 1]
  for (std::size_t v = 0; v < table.rows; ++v)
    if (v != id) found.push_back({cosine(table.row(id), table.row(v)), int(v)});
  std::ranges::sort(found, std::greater());
  return found;
}

}  // namespace t2t
