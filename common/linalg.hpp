// The one door to BLAS: matrix products that read views in place and write where the caller says.
//
// Weights are [out, in], as every checkpoint stores them, so a projection is x·Wᵀ: matmul_bt. One
// token against such a matrix is one dot product a row of W, bound by how fast W can be read:
// matmul_bt goes to matvec then, whose plain loop over rows reads memory faster than OpenBLAS's.
//
// xt::linalg::dot is not used: on A·Bᵀ it takes A and B for one matrix when they start at one
// address, and returns a wrong shape (tests/common_test.cpp shows it).
#pragma once

#include <string>

#include "tensor.hpp"

namespace t2t {

/// y = scale · a·b. y must not overlap a or b. Throws std::invalid_argument on unequal shapes.
void matmul(ConstMatrix a,  // [M, K]
            ConstMatrix b,  // [K, N]
            Matrix y,       // [M, N]
            float scale = 1);

/// y = scale · a·bᵀ, both read along their rows. Otherwise as matmul.
void matmul_bt(ConstMatrix a,  // [M, K]
               ConstMatrix b,  // [N, K]
               Matrix y,       // [M, N]
               float scale = 1);

/// y = w·x: one dot product a row. Otherwise as matmul.
void matvec(ConstMatrix w,  // [N, K]
            ConstRow x,     // [K]
            Row y);         // [N]

/// The same products, returned as new tensors, for formulas that should read like the paper. Of
/// stacks [H, M, K] and [H, K, N] (or [H, N, K]), each matrix with its partner.
Tensor<2> matmul(const Tensor<2>& a, const Tensor<2>& b);
Tensor<2> matmul_bt(const Tensor<2>& a, const Tensor<2>& b);
Tensor<3> matmul(const Tensor<3>& a, const Tensor<3>& b);
Tensor<3> matmul_bt(const Tensor<3>& a, const Tensor<3>& b);

/// Uses this many threads in BLAS and in OpenMP loops from here on.
void set_threads(int count);

/// What BLAS this program is linked with, e.g. "OpenBLAS 0.3.21", "OpenMP", "SkylakeX". Parts that
/// it does not tell are empty.
struct BlasInfo {
  std::string name, threading, kernels;
};
BlasInfo blas_info();

}  // namespace t2t
