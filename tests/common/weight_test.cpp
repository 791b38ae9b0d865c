// What must be true of a weight, however its numbers are stored.
#include "weight.hpp"

#include <doctest/doctest.h>

#include "random.hpp"
#include "support/all_close.hpp"
#include "support/packed_stand_ins.hpp"
#include "support/refuses.hpp"

namespace t2t::weight_test {

/// Multiplies together with others of its form, and counts these calls.
class TogetherWeight : public DoubledWeight {
 public:
  TogetherWeight(const Tensor<2>& floats, std::size_t& calls)
      : DoubledWeight(floats, 7), calls_(calls) {}

  bool products(ConstMatrix x, std::span<const WeightProduct> all) const override {
    for (const WeightProduct& one : all)
      if (!dynamic_cast<const TogetherWeight*>(one.w.packed())) return false;
    for (const WeightProduct& one : all) matmul_bt(x, one.w, one.y);
    ++calls_;
    return true;
  }

 private:
  std::size_t& calls_;
};

TEST_CASE("a weight multiplies and gives rows alike, as floats and packed") {
  Random random(1);
  const Tensor<2> floats = random.normal<2>({3, 4}), x = random.normal<2>({5, 4});
  for (const Weight& w : {Weight(floats), doubled(floats)}) {
    CHECK(w.rows() == 3);
    CHECK(w.cols() == 4);
    CHECK(w.size() == 12);
    CHECK(w.bytes() == (w.is_packed() ? 7 : 48));
    CHECK(all_close(matmul_bt(x, w), matmul_bt(x, floats), 0));
    Tensor<1> to = empty(4);
    w.row(2, row(to));
    CHECK(std::ranges::equal(to, row(floats, 2)));
  }
  CHECK(Weight().size() == 0);
  Weight w(floats);
  w.floats()(1, 1) = 5;
  CHECK(std::as_const(w).floats()(1, 1) == 5);
}

TEST_CASE("several products of one x are those of one weight after the other") {
  Random random(2);
  const Tensor<2> a = random.normal<2>({3, 4}), b = random.normal<2>({7, 4});
  std::size_t calls = 0;
  const auto at_once = [&](const Tensor<2>& floats) {
    return Weight(std::make_shared<TogetherWeight>(floats, calls));
  };
  for (const std::size_t T : {1, 5}) {
    const Tensor<2> x = random.normal<2>({T, std::size_t(4)});
    for (const auto& [of_a, of_b] : {std::pair{Weight(a), Weight(b)},
                                     {doubled(a), Weight(b)},
                                     {at_once(a), Weight(b)},
                                     {at_once(a), doubled(b)},
                                     {doubled(a), at_once(b)},
                                     {at_once(a), at_once(b)}}) {
      Tensor<2> y_a = empty(T, 3), y_b = empty(T, 7);
      matmul_bt_each(x, {{of_a, y_a}, {of_b, y_b}});
      CHECK(all_close(y_a, matmul_bt(x, a), 0));
      CHECK(all_close(y_b, matmul_bt(x, b), 0));
    }
  }
  CHECK(calls == 2);  // where both can
  matmul_bt_each(a, {});
  Tensor<2> y = empty(1, 3), narrow = empty(1, 6);
  const Tensor<2> x = random.normal<2>({1, 4});
  REFUSES(matmul_bt_each(x, {{at_once(a), y}, {at_once(b), narrow}}),
          "y: wanted shape [1, 7], got [1, 6]");
}

TEST_CASE("a bias is added to every row, and an empty one to none") {
  Tensor<2> y = {{1, 2}, {3, 4}};
  add_bias({10, 20}, y);
  add_bias(Tensor<1>(), y);
  CHECK(all_close(y, Tensor<2>{{11, 22}, {13, 24}}, 0));
  REFUSES(add_bias({1, 2, 3}, y), "bias: wanted shape [2], got [3]");
}

TEST_CASE("a weight refuses what does not fit, in both kinds") {
  using Bad = std::invalid_argument;
  Random random(1);
  const Tensor<2> floats = random.normal<2>({3, 4});
  Tensor<1> to = empty(4), brief = empty(3);
  Tensor<2> y = empty(5, 3);
  for (const Weight& w : {Weight(floats), doubled(floats)}) {
    REFUSES(w.row(3, row(to)), "row 3: wanted one of the 3 that a weight has");
    REFUSES(w.row(0, row(brief)), "to: wanted shape [4], got [3]");
    CHECK_THROWS_AS(matmul_bt(random.normal<2>({5, 3}), w, y), Bad);
    CHECK_THROWS_AS(matmul_bt(random.normal<2>({4, 4}), w, y), Bad);
    REFUSES(expect_shape("w", w, {4, 3}), "w: wanted shape [4, 3], got [3, 4]");
  }
  REFUSES(doubled(floats).floats(), "a weight [3, 4]: wanted floats, got packed numbers");
  REFUSES(Weight(std::shared_ptr<const PackedWeight>()),
          "a packed weight: wanted its numbers, got none");
}

}  // namespace t2t::weight_test
