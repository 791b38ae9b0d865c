#include <stdexcept>

#include "14_mixture_of_experts/gpu_bench/cublas_products.hpp"
#include "cuda/gpu_bench/cublas_handle.hpp"

namespace t2t {

namespace {

template <class Field>
auto each(const std::vector<MatrixProduct>& products, Field MatrixProduct::*field) {
  std::vector<Field> all;
  for (const MatrixProduct& p : products) all.push_back(p.*field);
  return all;
}
template <class To, class Pointer>
DeviceBuffer<To> pointers(const std::vector<MatrixProduct>& products,
                          Pointer MatrixProduct::*field) {
  const auto all = each(products, field);
  const std::vector<To> untyped(all.begin(), all.end());
  return DeviceBuffer<To>(std::span<const To>(untyped));
}

}  // namespace

CublasProducts::CublasProducts(const std::vector<MatrixProduct>& products)
    : products_(products),
      rows_(each(products, &MatrixProduct::rows)),
      out_(each(products, &MatrixProduct::out)),
      in_(each(products, &MatrixProduct::in)),
      x_(pointers<const void*>(products, &MatrixProduct::x)),
      w_(pointers<const void*>(products, &MatrixProduct::w)),
      y_(pointers<void*>(products, &MatrixProduct::y)) {}

#ifdef T2T_CUBLAS

// cuBLAS stores matrices by columns, so that a row-major [rows, out] is its [out, rows].

void CublasProducts::one_by_one() const {
  const float one = 1, zero = 0;
  for (const auto& [rows, out, in, x, w, y] : products_)
    check_cublas(cublasGemmEx(cublas_handle(), CUBLAS_OP_T, CUBLAS_OP_N, out, rows, in, &one, w,
                              CUDA_R_16BF, in, x, CUDA_R_16BF, in, &zero, y, CUDA_R_16BF, out,
                              CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
}

#else

void CublasProducts::one_by_one() const {
  throw std::runtime_error("this program was built without cuBLAS");
}

#endif

#if defined(T2T_CUBLAS) && CUBLAS_VERSION >= 120500

bool CublasProducts::takes_lists() { return true; }

void CublasProducts::in_one_call() const {
  const std::size_t count = products_.size();
  const std::vector<cublasOperation_t> turned(count, CUBLAS_OP_T), plain(count, CUBLAS_OP_N);
  const std::vector<int> single(count, 1);
  const std::vector<float> one(count, 1), zero(count, 0);
  check_cublas(cublasGemmGroupedBatchedEx(
      cublas_handle(), turned.data(), plain.data(), out_.data(), rows_.data(), in_.data(),
      one.data(), w_.data(), CUDA_R_16BF, in_.data(), x_.data(), CUDA_R_16BF, in_.data(),
      zero.data(), y_.data(), CUDA_R_16BF, out_.data(), int(count), single.data(),
      CUBLAS_COMPUTE_32F));
}

#else

bool CublasProducts::takes_lists() { return false; }
void CublasProducts::in_one_call() const {
  throw std::runtime_error("this cuBLAS accepts no list of products");
}

#endif

}  // namespace t2t
