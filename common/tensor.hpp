// The tensor of this book: a row-major float array of known rank, so the last index is contiguous.
//
// A "row" is one run along that last index: every chapter's fast code works a row at a time.
// A "matrix" here is a view: rows of equal length, some fixed distance apart, in storage that
// somebody else owns. One head inside [T, H·D] and the used part of a cache are such views, so
// products and row kernels read them in place (linalg.hpp).
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

/// Storage that begins where a cache line does: a register of 64 bytes that straddled two lines
/// would be read twice.
template <class T>
struct FromCacheLine {
  using value_type = T;
  static constexpr std::align_val_t line{64};

  FromCacheLine() = default;
  template <class Other>
  FromCacheLine(const FromCacheLine<Other>&) {}
  T* allocate(std::size_t n) {
    if (n > std::size_t(-1) / sizeof(T)) throw std::bad_array_new_length();
    return static_cast<T*>(::operator new(n * sizeof(T), line));
  }
  void deallocate(T* from, std::size_t) { ::operator delete(from, line); }
  bool operator==(const FromCacheLine&) const = default;
};

template <std::size_t N>
using Tensor = xt::xtensor<float, N, xt::layout_type::row_major, FromCacheLine<float>>;

using Row = std::span<float>;
using ConstRow = std::span<const float>;

/// rows x cols numbers; row t begins at data + t * stride. Owns nothing: the storage must outlive
/// it. Float is float or const float.
template <class Float>
struct MatrixView {
  Float* data;
  std::size_t rows, cols;
  std::size_t stride;  // floats from one row to the next, at least cols

  MatrixView(Float* data, std::size_t rows, std::size_t cols, std::size_t stride)
      : data(data), rows(rows), cols(cols), stride(stride) {}
  /// The whole of a tensor [rows, cols]. (Its own strides won't do: a dimension of 1 has stride 0.)
  MatrixView(std::conditional_t<std::is_const_v<Float>, const Tensor<2>, Tensor<2>>& x)
      : MatrixView(x.data(), x.shape(0), x.shape(1), x.shape(1)) {}
  /// Whoever may write may read.
  template <class Other>
  requires std::is_same_v<Float, const Other> MatrixView(MatrixView<Other> other)
      : MatrixView(other.data, other.rows, other.cols, other.stride) {}

  /// Row t, [cols].
  std::span<Float> row(std::size_t t) const { return {data + t * stride, cols}; }
  /// Rows from, from + 1 … [count, cols].
  MatrixView rows_from(std::size_t from, std::size_t count) const {
    return {data + from * stride, count, cols, stride};
  }
  /// Columns from, from + 1 … [rows, count].
  MatrixView cols_from(std::size_t from, std::size_t count) const {
    return {data + from, rows, count, stride};
  }
  /// Head h of rows that hold H heads of D numbers side by side: [T, H·D] seen as [T, D].
  MatrixView head(std::size_t h, std::size_t D) const { return cols_from(h * D, D); }
};

using Matrix = MatrixView<float>;
using ConstMatrix = MatrixView<const float>;

/// Row t of a matrix [T, C], without a copy.
inline Row row(Tensor<2>& x, std::size_t t) { return Matrix(x).row(t); }
inline ConstRow row(const Tensor<2>& x, std::size_t t) { return ConstMatrix(x).row(t); }
/// A vector [C] as the row that it is.
inline Row row(Tensor<1>& x) { return {x.data(), x.size()}; }
inline ConstRow row(const Tensor<1>& x) { return {x.data(), x.size()}; }

/// Matrix i of a stack [N, rows, cols], without a copy.
inline Matrix matrix(Tensor<3>& x, std::size_t i) {
  return {x.data() + i * x.shape(1) * x.shape(2), x.shape(1), x.shape(2), x.shape(2)};
}
inline ConstMatrix matrix(const Tensor<3>& x, std::size_t i) {
  return {x.data() + i * x.shape(1) * x.shape(2), x.shape(1), x.shape(2), x.shape(2)};
}

/// Storage of a given shape, not yet filled. (Braces after a Tensor's name could also mean a list
/// of values, so the house always says which.)
template <class... Size>
Tensor<sizeof...(Size)> empty(Size... sizes) {
  return Tensor<sizeof...(Size)>::from_shape({static_cast<std::size_t>(sizes)...});
}

/// The numbers of a view, in a tensor of their own.
inline Tensor<2> copy_of(ConstMatrix x) {
  Tensor<2> copy = empty(x.rows, x.cols);
  for (std::size_t t = 0; t < x.rows; ++t) std::ranges::copy(x.row(t), row(copy, t).begin());
  return copy;
}

/// One number for each token, [T], seen as [T, 1], so that it meets all C channels of its row.
/// Without it, [T] against [T, C] pairs tokens with channels: an error, or silently wrong when T
/// and C are equal.
inline auto as_column(const Tensor<1>& x) { return xt::view(x, xt::all(), xt::newaxis()); }

}  // namespace t2t
