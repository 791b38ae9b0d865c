// A graph: launches that are recorded once and then run again together, with the same arguments.
// Starting a kernel takes the CPU some microseconds, and a GPU waits for it when kernels are short.
// A graph is started once for all of them. This header needs none of CUDA's.
#pragma once

#include <functional>
#include <utility>

namespace t2t {

class Graph {
 public:
  /// Calls work, whose launches are recorded and not run. It must do nothing else on the device:
  /// no copies, and no memory. What changes from run to run must be read from device memory. Throws
  /// what work throws; std::runtime_error when CUDA can't record it. No other thread may launch
  /// kernels meanwhile.
  explicit Graph(const std::function<void()>& work);
  ~Graph();
  Graph(Graph&& other) noexcept : recorded_(std::exchange(other.recorded_, nullptr)) {}
  Graph& operator=(Graph&& other) noexcept {
    std::swap(recorded_, other.recorded_);
    return *this;
  }

  /// Starts the launches in their order, after all earlier work; on a GPU it does not wait for
  /// them. Not for a graph that was moved from. Throws std::runtime_error as launches do.
  void launch() const;

 private:
  void* recorded_;
};

}  // namespace t2t
