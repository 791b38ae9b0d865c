// T2T_LAUNCH under nvcc: launches the kernel and checks for an error. What goes wrong while a
// kernel runs is noticed later, at the next copy or launch, where nobody knows its name. With
// T2T_SYNC=1 in the environment each launch waits for its kernel, and names it.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "cuda/device.hpp"

namespace t2t {

/// What is launched, and where in the source.
struct LaunchSite {
  const char* kernel;
  const char* file;
  int line;
};

/// Allows the kernel this much dynamic shared memory. A kernel must ask for it when it has more
/// than 48 KiB together with its static shared memory. CUDA is asked once for each kernel, since
/// that takes longer than a launch. Throws std::runtime_error when the GPU has less.
void allow_shared(const LaunchSite& site, const void* kernel, std::size_t dynamic_bytes);
/// How many blocks of the kernel a multiprocessor has room for, with this much dynamic shared
/// memory each. CUDA is asked once for each kernel and size. 0 when the GPU has less memory than
/// one takes.
int blocks_of_multiprocessor(const LaunchSite& site, const void* kernel, int threads,
                             std::size_t dynamic_bytes);
template <class... Parameters>
int blocks_of_multiprocessor(const LaunchSite& site, void (*kernel)(Parameters...), int threads,
                             std::size_t dynamic_bytes) {
  return blocks_of_multiprocessor(site, reinterpret_cast<const void*>(kernel), threads,
                                  dynamic_bytes);
}
/// Where kernels are launched: into CUDA's default stream, or that of the graph being recorded.
cudaStream_t launch_stream();
/// With T2T_SYNC=1: waits for the kernel, unless it was only recorded.
void wait_if_asked(const LaunchSite& site);

template <class... Parameters, class... Arguments>
void launch(const LaunchSite& site, void (*kernel)(Parameters...), dim3 grid, dim3 block,
            std::size_t shared_bytes, Arguments&&... arguments) {
  if (shared_bytes > 0) allow_shared(site, reinterpret_cast<const void*>(kernel), shared_bytes);
  kernel<<<grid, block, shared_bytes, launch_stream()>>>(static_cast<Parameters>(arguments)...);
  check_cuda(cudaGetLastError(), site.kernel, site.file, site.line);
  wait_if_asked(site);
}

}  // namespace t2t
