// Lists of ints on a device, each at an offset of its own in one buffer. A step's lists take one
// copy, and recorded launches find the lists of a later step where they found those of their own.
// The longest list should be the last: what it does not use is not copied. Runs on the host.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "cuda/device.hpp"

namespace t2t {

class FixedLists {
 public:
  /// List i has up to max_sizes[i] elements.
  explicit FixedLists(std::span<const std::size_t> max_sizes);

  /// Throws std::invalid_argument when list i has no room for them.
  void set(std::size_t i, std::span<const int> elements);
  /// Copies all lists, up to the end of what was set in the last one.
  void upload() { copy_to_device(device_.data(), staged_.data(), bytes()); }

  const int* on_device(std::size_t i) const { return device_.data() + begins_[i]; }
  /// What upload copies.
  std::size_t bytes() const { return (begins_[begins_.size() - 2] + of_last_) * sizeof(int); }

 private:
  std::vector<std::size_t> begins_;  // of each list, and the end of the last
  std::vector<int> staged_;
  std::size_t of_last_ = 0;  // elements
  DeviceBuffer<int> device_;
};

}  // namespace t2t
