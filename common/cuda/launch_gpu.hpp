// T2T_LAUNCH under nvcc: launches the kernel and checks for an error.
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

template <class... Parameters, class... Arguments>
void launch(const LaunchSite& site, void (*kernel)(Parameters...), dim3 grid, dim3 block,
            std::size_t shared_bytes, Arguments&&... arguments) {
  // A kernel that uses more than 48 KiB of shared memory must ask for it first.
  if (shared_bytes > 48 * 1024) {
    check_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    static_cast<int>(shared_bytes)),
               site.kernel, site.file, site.line);
  }
  kernel<<<grid, block, shared_bytes>>>(static_cast<Parameters>(arguments)...);
  check_cuda(cudaGetLastError(), site.kernel, site.file, site.line);
}

}  // namespace t2t
