// Matrix products and sums that read views in place and write where the caller says. Only
// linalg.cpp uses BLAS.
//
// Weights are stored as [out, in], as in checkpoints, so a projection is x·Wᵀ: matmul_bt. For one
// token that is one dot product for each row of W, and its speed is that of reading W. matmul_bt
// then calls matvec, whose plain loop over the rows reads memory faster than OpenBLAS does.
//
// xt::linalg::dot is not used: for A·Bᵀ it treats A and B as one matrix when they start at the same
// address, and returns a wrong shape (tests/common_test.cpp shows it).
#pragma once

#include <string>

#include "tensor.hpp"

namespace t2t {

/// y = scale · a·b. y must not overlap a or b. Throws std::invalid_argument when shapes disagree.
void matmul(ConstMatrix a,  // [M, K]
            ConstMatrix b,  // [K, N]
            Matrix y,       // [M, N]
            float scale = 1);

/// y = scale · a·bᵀ: the dot products of rows of a with rows of b. Otherwise as matmul.
void matmul_bt(ConstMatrix a,  // [M, K]
               ConstMatrix b,  // [N, K]
               Matrix y,       // [M, N]
               float scale = 1);

/// y += a·b, and y += aᵀ·b: what a backward pass adds to a gradient. Otherwise as matmul.
void add_matmul(ConstMatrix a,     // [M, K]
                ConstMatrix b,     // [K, N]
                Matrix y);         // [M, N]
void add_matmul_at(ConstMatrix a,  // [K, M]
                   ConstMatrix b,  // [K, N]
                   Matrix y);      // [M, N]

/// x += added, as in a residual connection. Otherwise as matmul.
void add_rows(ConstMatrix added,  // [T, C]
              Matrix x);          // [T, C]

/// y = w·x: one dot product for each row of w. Otherwise as matmul.
void matvec(ConstMatrix w,  // [N, K]
            ConstRow x,     // [K]
            Row y);         // [N]

/// The same products as new tensors, for code that should read like a formula. For stacks [H, M, K]
/// and [H, K, N] (or [H, N, K]), matrix h of the first is multiplied with matrix h of the second.
Tensor<2> matmul(const Tensor<2>& a, const Tensor<2>& b);
Tensor<2> matmul_bt(const Tensor<2>& a, const Tensor<2>& b);
Tensor<3> matmul(const Tensor<3>& a, const Tensor<3>& b);
Tensor<3> matmul_bt(const Tensor<3>& a, const Tensor<3>& b);

/// Sets the number of threads for BLAS and OpenMP loops from here on.
void set_threads(int count);

/// The BLAS that this program is linked with, e.g. "OpenBLAS 0.3.21", "OpenMP", "SkylakeX". What it
/// does not say is empty.
struct BlasInfo {
  std::string name, threading, kernels;
};
BlasInfo blas_info();

}  // namespace t2t
