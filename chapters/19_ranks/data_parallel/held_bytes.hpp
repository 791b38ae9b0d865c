// What a rank stores of a training's state, in bytes: measured from what it has allocated, or by
// formula (sharded/sharded_costs.hpp).
#pragma once

#include <cstddef>
#include <vector>

#include "13_training/trainer/tensor_list.hpp"

namespace t2t {

struct HeldBytes {
  std::size_t weights, gradients;
  std::size_t optimizer;  // AdamW's two means
  std::size_t rooms = 0;  // in which whole tensors are put together for a while

  bool operator==(const HeldBytes&) const = default;
  std::size_t all() const { return weights + gradients + optimizer + rooms; }
};

/// Of the tensors' elements.
inline std::size_t bytes_of(const std::vector<ListedTensor>& tensors) {
  std::size_t elements = 0;
  for (const ListedTensor& tensor : tensors) elements += tensor.numbers.size();
  return elements * sizeof(float);
}

}  // namespace t2t
