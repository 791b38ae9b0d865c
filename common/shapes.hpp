// The letters for dimensions throughout the book, and checks of shapes.
//
//   B batch   T tokens   C model width   H query heads   G key/value heads   D head width
//   F feed-forward width   V vocabulary   L layers   E experts   T_max context length
//   S positions (of keys, of a cache or of a table)
#pragma once

#include <concepts>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "tensor.hpp"

namespace t2t {

/// Throws std::invalid_argument, naming the tensor and both shapes, unless got equals wanted.
void expect_shape(std::string_view name, std::span<const std::size_t> got,
                  std::initializer_list<std::size_t> wanted);

template <std::size_t N>
void expect_shape(std::string_view name, const Tensor<N>& x,
                  std::initializer_list<std::size_t> wanted) {
  expect_shape(name, std::span<const std::size_t>(x.shape().data(), N), wanted);
}
inline void expect_shape(std::string_view name, ConstMatrix x,
                         std::initializer_list<std::size_t> wanted) {
  const std::size_t got[] = {x.rows, x.cols};
  expect_shape(name, std::span<const std::size_t>(got), wanted);
}
inline void expect_shape(std::string_view name, Matrix x,
                         std::initializer_list<std::size_t> wanted) {
  expect_shape(name, ConstMatrix(x), wanted);
}
inline void expect_shape(std::string_view name, ConstRow x,
                         std::initializer_list<std::size_t> wanted) {
  const std::size_t got[] = {x.size()};
  expect_shape(name, std::span<const std::size_t>(got), wanted);
}

/// Throws std::invalid_argument("name: wanted …, got …") unless the condition holds.
/// wanted: "at least 1", "an even number".
void expect(bool condition, std::string_view name, std::string_view wanted, double got);

/// What expect throws. For a `wanted` that is costly to format: the caller tests the condition
/// itself.
[[noreturn]] void refuse(std::string_view name, std::string_view wanted, double got);

/// The same for integers, which are written as the doubles nearest to them: 5, or 1e+20.
void expect(bool condition, std::string_view name, std::string_view wanted,
            std::integral auto got) {
  expect(condition, name, wanted, double(got));
}
[[noreturn]] void refuse(std::string_view name, std::string_view wanted, std::integral auto got) {
  refuse(name, wanted, double(got));
}

/// "[5, 64]"
std::string shape_text(std::span<const std::size_t> shape);

}  // namespace t2t
