// Neighbours: the rows of a table that point in nearly the same direction as a given row.
//
//   cosine(a, b) = Σ over c of a[c] · b[c] / (|a| · |b|)
//
// It is 1 for the same direction, 0 for perpendicular rows and -1 for opposite ones; the lengths do
// not matter. Cosines of rows of a random table have mean 0 and standard deviation 1/sqrt(C). The
// program uses it to look at a table; no model does.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <vector>

#include "tensor.hpp"

namespace t2t {

/// 0 when a or b is a row of zeros, which has no direction.
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

/// All other rows of the table, the one with the largest cosine to row id first.
inline std::vector<Neighbour> neighbours(ConstMatrix table, std::size_t id) {  // [V, C]
  std::vector<Neighbour> found;                                                // [V - 1]
  for (std::size_t v = 0; v < table.rows; ++v)
    if (v != id) found.push_back({cosine(table.row(id), table.row(v)), int(v)});
  std::ranges::sort(found, std::greater());
  return found;
}

}  // namespace t2t
