// The order in which the stand-in does what a GPU may do in any order. T2T_ORDER names it.
#pragma once

#include <cstddef>
#include <random>
#include <vector>

namespace t2t::stand_in {

class Order {
 public:
  Order() = default;  // forward
  /// The order that the environment variable T2T_ORDER names: forward (the default), reverse, or a
  /// number, the seed of a random order. Throws std::runtime_error for anything else.
  static Order wanted();

  bool is_random() const { return kind_ == Kind::random; }

  /// 0, 1, … count − 1 in this order.
  std::vector<std::size_t> of(std::size_t count) const;
  /// An index below count: the first, the last, or a random one.
  std::size_t choose(std::size_t count);
  /// Decides about what a GPU may do or not: no, yes, or yes in one of `many` random cases.
  bool decide(unsigned many);
  /// A random number, and the number that names the order. Only of a random order.
  unsigned draw() { return static_cast<unsigned>(random_()); }
  unsigned seed() const { return seed_; }

 private:
  enum class Kind { forward, reverse, random } kind_ = Kind::forward;
  unsigned seed_ = 0;
  std::mt19937 random_;
};

}  // namespace t2t::stand_in
