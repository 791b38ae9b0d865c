// Lists of ints on a device, each at a place of its own in one buffer. A step's lists are copied at
// once, and recorded launches find the lists of a later step where they found those of their own.
// Runs on the host.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "cuda/device.hpp"

namespace t2t {

class FixedLists {
 public:
  /// List i has up to most[i] elements.
  explicit FixedLists(std::span<const std::size_t> most);

  /// Throws std::invalid_argument when list i has no room for them.
  void set(std::size_t i, std::span<const int> elements);
  /// Copies what was set, all lists in one copy.
  void upload() { device_.upload(staged_); }

  const int* on_device(std::size_t i) const { return device_.data() + begins_[i]; }
  std::size_t bytes() const { return staged_.size() * sizeof(int); }

 private:
  std::vector<std::size_t> begins_;  // of each list, and the end of the last
  std::vector<int> staged_;
  DeviceBuffer<int> device_;
};

}  // namespace t2t
