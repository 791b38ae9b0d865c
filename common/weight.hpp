// A matrix of weights, [out, in], however its elements are stored.
//
// A model uses a weight in two ways: in the product y = x·Wᵀ, and for single rows as floats. The
// elements can be floats (Tensor<2>), or packed in another form that offers both (PackedWeight):
// chapter 12 packs them in few bits. Code that multiplies by a Weight is the same for both.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <variant>

#include "tensor.hpp"

namespace t2t {

class Weight;

/// One of several products of the same x: y = x·Wᵀ.
struct WeightProduct {
  const Weight& w;  // [out, in]
  Matrix y;         // [T, out]
};

/// Weights that are not stored as floats; a form of storage derives from it. The functions are
/// called with correct shapes. Products are called outside of parallel loops, so that they can use
/// all threads; `row` can be called by several threads at once.
class PackedWeight {
 public:
  const std::size_t rows, cols, bytes;  // out, in, and the size of the storage

  PackedWeight(std::size_t rows, std::size_t cols, std::size_t bytes)
      : rows(rows), cols(cols), bytes(bytes) {}
  PackedWeight(const PackedWeight&) = delete;
  virtual ~PackedWeight() = default;

  virtual void product(ConstMatrix x, Matrix y) const = 0;  // y [T, rows] = x [T, cols]·Wᵀ
  virtual void row(std::size_t r, Row to) const = 0;        // row r as floats, [cols]

  /// Several products of one x in one call, of which this weight's is the first. False, and nothing
  /// is done, unless all weights are of a form that can.
  virtual bool products(ConstMatrix x, std::span<const WeightProduct> all) const;
};

class Weight {
 public:
  Weight() = default;  // no weight: [0, 0]
  explicit Weight(Tensor<2> floats) : stored_(std::move(floats)) {}
  /// Copies of a packed weight share its storage. Throws std::invalid_argument when there are none.
  explicit Weight(std::shared_ptr<const PackedWeight> packed);
  Weight& operator=(Tensor<2> floats) { return *this = Weight(std::move(floats)); }

  std::size_t rows() const;
  std::size_t cols() const;
  std::size_t size() const { return rows() * cols(); }  // elements
  std::size_t bytes() const;                            // of storage
  bool is_packed() const { return packed() != nullptr; }
  const PackedWeight* packed() const;  // or null

  /// The floats, in place. Throws std::invalid_argument when the weight is packed.
  Tensor<2>& floats();
  const Tensor<2>& floats() const;

  /// Row r as floats. Throws std::invalid_argument unless r is below rows and `to` is [cols].
  void row(std::size_t r, Row to) const;

 private:
  std::variant<Tensor<2>, std::shared_ptr<const PackedWeight>> stored_;  // [rows, cols]
};

/// The elements as floats: the weight's own, or written to `room` where they are packed.
const Tensor<2>& floats_of(const Weight& w, Tensor<2>& room);

/// y = x·Wᵀ, as linalg.hpp's matmul_bt, which it calls when the weights are floats. Throws
/// std::invalid_argument when shapes disagree.
void matmul_bt(ConstMatrix x,    // [T, in]
               const Weight& w,  // [out, in]
               Matrix y);        // [T, out]
Tensor<2> matmul_bt(const Tensor<2>& x, const Weight& w);

/// The products of one x with several weights, such as those of q, k and v. The results are those
/// of matmul_bt with each. Packed weights can share what they do with x, and one parallel loop.
void matmul_bt_each(ConstMatrix x, std::initializer_list<WeightProduct> all);

/// Adds bias to each row of y. An empty bias adds nothing. Throws std::invalid_argument unless bias
/// is [C] or empty.
void add_bias(const Tensor<1>& bias,  // [C] or [0]
              Matrix y);              // [T, C]

/// As expect_shape in shapes.hpp.
void expect_shape(std::string_view name, const Weight& w,
                  std::initializer_list<std::size_t> wanted);

}  // namespace t2t
