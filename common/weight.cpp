#include "weight.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <stdexcept>

#include "linalg.hpp"
#include "rows.hpp"
#include "shapes.hpp"

namespace t2t {

bool PackedWeight::products(ConstMatrix, std::span<const WeightProduct>) const { return false; }

Weight::Weight(std::shared_ptr<const PackedWeight> packed) : stored_(std::move(packed)) {
  if (!this->packed()) throw std::invalid_argument("a packed weight: wanted its numbers, got none");
}

const PackedWeight* Weight::packed() const {
  const auto* packed = std::get_if<std::shared_ptr<const PackedWeight>>(&stored_);
  return packed ? packed->get() : nullptr;
}

std::size_t Weight::rows() const {
  if (packed()) return packed()->rows;
  return floats().shape(0);
}

std::size_t Weight::cols() const {
  if (packed()) return packed()->cols;
  return floats().shape(1);
}

std::size_t Weight::bytes() const {
  if (packed()) return packed()->bytes;
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
  if (packed()) return packed()->row(r, to);
  std::ranges::copy(t2t::row(floats(), r), to.begin());
}

const Tensor<2>& floats_of(const Weight& w, Tensor<2>& room) {
  if (!w.is_packed()) return w.floats();
  room = empty(w.rows(), w.cols());
  for (std::size_t r = 0; r < w.rows(); ++r) w.row(r, row(room, r));
  return room;
}

void matmul_bt(ConstMatrix x, const Weight& w, Matrix y) {
  if (!w.is_packed()) return matmul_bt(x, ConstMatrix(w.floats()), y);
  expect_shape("x", x, {x.rows, w.cols()});
  expect_shape("y", y, {x.rows, w.rows()});
  w.packed()->product(x, y);
}

void matmul_bt_each(ConstMatrix x, std::initializer_list<WeightProduct> all) {
  for (const auto& [w, y] : all) {
    expect_shape("x", x, {x.rows, w.cols()});
    expect_shape("y", y, {x.rows, w.rows()});
  }
  if (all.size() == 0) return;
  const PackedWeight* first = all.begin()->w.packed();
  if (first && first->products(x, all)) return;
  for (const auto& [w, y] : all) matmul_bt(x, w, y);
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
