// The tensor of this book: a row-major float array of known rank, so the last index is contiguous.
//
// A "row" is the elements along that last index; the fast code of the chapters works row by row. A
// "matrix" here is a view: rows of equal length, a fixed distance apart, in storage that something
// else owns. One head inside [T, H·D] and the used part of a cache are such views, so products
// (linalg.hpp) and row kernels read them in place.
#pragma once

#include <algorithm>
#include <cstddef>
#include <new>
#include <span>
#include <type_traits>

// xtensor 0.26 moved its headers into folders.
#if __has_include(<xtensor/containers/xtensor.hpp>)
#include <xtensor/containers/xtensor.hpp>
#include <xtensor/core/xmath.hpp>
#include <xtensor/views/xview.hpp>
#else
#include <xtensor/xmath.hpp>
#include <xtensor/xtensor.hpp>
#include <xtensor/xview.hpp>
#endif

namespace t2t {

/// An allocator whose storage begins at a multiple of 64 bytes, a cache line, so that a vector
/// register of 64 bytes never has to be read from two lines.
template <class T>
struct CacheLineAllocator {
  using value_type = T;
  static constexpr std::align_val_t line{64};

  CacheLineAllocator() = default;
  template <class Other>
  CacheLineAllocator(const CacheLineAllocator<Other>&) {}
  T* allocate(std::size_t n) {
    if (n > std::size_t(-1) / sizeof(T)) throw std::bad_array_new_length();
    return static_cast<T*>(::operator new(n * sizeof(T), line));
  }
  void deallocate(T* from, std::size_t) { ::operator delete(from, line); }
  bool operator==(const CacheLineAllocator&) const = default;
};

template <std::size_t N>
using Tensor = xt::xtensor<float, N, xt::layout_type::row_major, CacheLineAllocator<float>>;

using Row = std::span<float>;
using ConstRow = std::span<const float>;

/// A view of rows x cols elements; row t begins at data + t * stride. The storage must outlive it.
/// Float is float or const float.
template <class Float>
struct MatrixView {
  Float* data;
  std::size_t rows, cols;
  std::size_t stride;  // floats from one row to the next, at least cols

  MatrixView(Float* data, std::size_t rows, std::size_t cols, std::size_t stride)
      : data(data), rows(rows), cols(cols), stride(stride) {}
  /// The whole of a tensor [rows, cols]. (xtensor's own strides can't be used: they are 0 for a
  /// dimension of 1.)
  MatrixView(std::conditional_t<std::is_const_v<Float>, const Tensor<2>, Tensor<2>>& x)
      : MatrixView(x.data(), x.shape(0), x.shape(1), x.shape(1)) {}
  /// A Matrix can be used as a ConstMatrix.
  template <class Other>
  requires std::is_same_v<Float, const Other> MatrixView(MatrixView<Other> other)
      : MatrixView(other.data, other.rows, other.cols, other.stride) {}

  /// Row t, [cols].
  std::span<Float> row(std::size_t t) const { return {data + t * stride, cols}; }
  /// `count` rows from row `from` on: [count, cols].
  MatrixView rows_from(std::size_t from, std::size_t count) const {
    return {data + from * stride, count, cols, stride};
  }
  /// `count` columns from column `from` on: [rows, count].
  MatrixView cols_from(std::size_t from, std::size_t count) const {
    return {data + from, rows, count, stride};
  }
  /// Head h of rows that hold H heads of width D side by side: [T, H·D] seen as [T, D].
  MatrixView head(std::size_t h, std::size_t D) const { return cols_from(h * D, D); }
};

using Matrix = MatrixView<float>;
using ConstMatrix = MatrixView<const float>;

/// Row t of a matrix [T, C], without a copy.
inline Row row(Tensor<2>& x, std::size_t t) { return Matrix(x).row(t); }
inline ConstRow row(const Tensor<2>& x, std::size_t t) { return ConstMatrix(x).row(t); }
/// A vector [C] as a row.
inline Row row(Tensor<1>& x) { return {x.data(), x.size()}; }
inline ConstRow row(const Tensor<1>& x) { return {x.data(), x.size()}; }

/// Matrix i of a stack [N, rows, cols], without a copy.
inline Matrix matrix(Tensor<3>& x, std::size_t i) {
  return {x.data() + i * x.shape(1) * x.shape(2), x.shape(1), x.shape(2), x.shape(2)};
}
inline ConstMatrix matrix(const Tensor<3>& x, std::size_t i) {
  return {x.data() + i * x.shape(1) * x.shape(2), x.shape(1), x.shape(2), x.shape(2)};
}

/// A tensor of this shape whose elements are not yet set. (Braces after the name of a Tensor could
/// also mean a list of values.)
template <class... Size>
Tensor<sizeof...(Size)> empty(Size... sizes) {
  return Tensor<sizeof...(Size)>::from_shape({static_cast<std::size_t>(sizes)...});
}

/// A tensor with a copy of the view's elements.
inline Tensor<2> copy_of(ConstMatrix x) {
  Tensor<2> copy = empty(x.rows, x.cols);
  for (std::size_t t = 0; t < x.rows; ++t) std::ranges::copy(x.row(t), row(copy, t).begin());
  return copy;
}

/// One value for each token, [T], as a view [T, 1], which combines with all C channels of the
/// token's row. Without it, [T] and [T, C] would pair tokens with channels: an error, or a wrong
/// result when T and C are equal.
inline auto as_column(const Tensor<1>& x) { return xt::view(x, xt::all(), xt::newaxis()); }

}  // namespace t2t
