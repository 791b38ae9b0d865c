// A CUDA graph. Kernels are otherwise launched into CUDA's default stream, in which nothing can be
// recorded: while a graph is recorded, they go into a stream of its own.
#include <cuda_runtime.h>

#include "cuda/graph.hpp"
#include "cuda/launch_gpu.hpp"

namespace t2t {

namespace {

cudaStream_t recording_stream = nullptr;

/// Records launches as long as it lives.
class Recording {
 public:
  Recording() {
    cudaStream_t stream = nullptr;
    T2T_CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    T2T_CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    recording_stream = stream;
  }
  ~Recording() {
    if (recording_stream == nullptr) return;
    cudaGraph_t unwanted = nullptr;  // work has thrown
    cudaStreamEndCapture(recording_stream, &unwanted);
    cudaGraphDestroy(unwanted);
    end();
  }
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  cudaGraph_t finish() {
    cudaGraph_t graph = nullptr;
    const cudaError_t status = cudaStreamEndCapture(recording_stream, &graph);
    end();
    check_cuda(status, "cudaStreamEndCapture", __FILE__, __LINE__);
    return graph;
  }

 private:
  static void end() {
    cudaStreamDestroy(recording_stream);
    recording_stream = nullptr;
  }
};

}  // namespace

cudaStream_t launch_stream() { return recording_stream; }

Graph::Graph(const std::function<void()>& work) : recorded_(nullptr) {
  Recording recording;
  work();
  const cudaGraph_t graph = recording.finish();
  cudaGraphExec_t made = nullptr;
  const cudaError_t status = cudaGraphInstantiate(&made, graph, 0);
  cudaGraphDestroy(graph);
  check_cuda(status, "cudaGraphInstantiate", __FILE__, __LINE__);
  recorded_ = made;
}

Graph::~Graph() {
  if (recorded_ != nullptr) cudaGraphExecDestroy(static_cast<cudaGraphExec_t>(recorded_));
}

void Graph::launch() const {
  T2T_CUDA_CHECK(cudaGraphLaunch(static_cast<cudaGraphExec_t>(recorded_), nullptr));
}

}  // namespace t2t
