#include "weight.hpp"

#include <fmt/core.h>

#include <stdexcept>

#include "linalg.hpp"
#include "rows.hpp"
#include "shapes.hpp"

namespace t2t {

Weight::Weight(PackedWeight packed) : stored_(std::move(packed)) {
  const auto& [rows, cols, bytes, product, row] = std::get<PackedWeight>(stored_);
  if (!product || !row)
    throw std::invalid_argument(
        fmt::format("a packed weight [{}, {}]: wanted a product and a row, got none", rows, cols));
}

std::size_t Weight::rows() const {
  if (const auto* packed = std::get_if<PackedWeight>(&stored_)) return packed->rows;
  return floats().shape(0);
}

std::size_t Weight::cols() const {
  if (const auto* packed = std::get_if<PackedWeight>(&stored_)) return packed->cols;
  return floats().shape(1);
}

std::size_t Weight::bytes() const {
  if (const auto* packed = std::get_if<PackedWeight>(&stored_)) return packed->bytes;
  return size() * sizeof(float);
}

const Tensor<2>& Weight::floats() const {
  if (const auto* floats = std::get_if<Tensor<2>>(&stored_)) return *floats;
  throw std::invalid_argument(
      fmt::format("a weight [{}, {}]: wanted floats, got packed numbers", rows(), cols()));
}

Tensor<2>& Weight::floats() { return const_cast<Tensor<2>&>(std::as_const(*this).floats()); }

void Weight::row(std::size_t r, Row to) const {
  if (r >= rows())
    throw std::invalid_argument(
        fmt::format("row {}: wanted one of the {} that a weight has", r, rows()));
  expect_shape("to", ConstRow(to), {cols()});
  if (const auto* packed = std::get_if<PackedWeight>(&stored_)) return packed->row(r, to);
  std::ranges::copy(t2t::row(floats(), r), to.begin());
}

void matmul_bt(ConstMatrix x, const Weight& w, Matrix y) {
  const auto* packed = std::get_if<PackedWeight>(&w.stored_);
  if (!packed) return matmul_bt(x, ConstMatrix(w.floats()), y);
  expect_shape("x", x, {x.rows, packed->cols});
  expect_shape("y", y, {x.rows, packed->rows});
  packed->product(x, y);
}

Tensor<2> matmul_bt(const Tensor<2>& x, const Weight& w) {
  Tensor<2> y = empty(x.shape(0), w.rows());  // [T, out]
  matmul_bt(ConstMatrix(x), w, Matrix(y));
  return y;
}

void add_bias(const Tensor<1>& bias, Matrix y) {
  if (bias.size() == 0) return;
  expect_shape("bias", bias, {y.cols});
  for_each_row(y.rows, y.cols, [&](std::size_t t) {
    const Row y_t = y.row(t);
#pragma omp simd
    for (std::size_t c = 0; c < y_t.size(); ++c) y_t[c] += bias(c);
  });
}

void expect_shape(std::string_view name, const Weight& w,
                  std::initializer_list<std::size_t> wanted) {
  const std::size_t got[] = {w.rows(), w.cols()};
  expect_shape(name, std::span<const std::size_t>(got), wanted);
}

}  // namespace t2t
