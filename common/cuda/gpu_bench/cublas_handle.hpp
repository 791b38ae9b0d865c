// cuBLAS, where the build found it (T2T_CUBLAS).
#pragma once

#ifdef T2T_CUBLAS
#include <cublas_v2.h>

#include <stdexcept>
#include <string>

namespace t2t {

inline void check_cublas(cublasStatus_t status) {
  if (status != CUBLAS_STATUS_SUCCESS)
    throw std::runtime_error("cuBLAS failed with status " + std::to_string(int(status)));
}

inline cublasHandle_t cublas_handle() {
  static const cublasHandle_t made = [] {
    cublasHandle_t handle;
    check_cublas(cublasCreate(&handle));
    return handle;
  }();
  return made;
}

}  // namespace t2t
#endif
