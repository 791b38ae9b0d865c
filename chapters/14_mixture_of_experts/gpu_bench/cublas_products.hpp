// What gpu_bench.cpp compares the experts' kernels with: the same products by cuBLAS. Needs a GPU
// and cuBLAS.
#pragma once

#include <vector>

#include "cuda/device.hpp"
#include "cuda/half_types.hpp"

namespace t2t {

/// y = x·wᵀ, in device memory: [rows, out], [rows, in], [out, in].
struct MatrixProduct {
  int rows, out, in;
  const bf16 *x, *w;
  bf16* y;
};

class CublasProducts {
 public:
  explicit CublasProducts(const std::vector<MatrixProduct>& products);
  /// Throws std::runtime_error without cuBLAS.
  void one_by_one() const;
  /// Whether this cuBLAS accepts a list of products, as it does since 12.5. If not, in_one_call
  /// throws.
  static bool takes_lists();
  void in_one_call() const;

 private:
  std::vector<MatrixProduct> products_;
  std::vector<int> rows_, out_, in_;
  DeviceBuffer<const void*> x_, w_;
  DeviceBuffer<void*> y_;
};

}  // namespace t2t
