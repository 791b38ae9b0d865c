#include "shapes.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <stdexcept>

namespace t2t {

std::string shape_text(std::span<const std::size_t> shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

void expect_shape(std::string_view name, std::span<const std::size_t> got,
                  std::initializer_list<std::size_t> wanted) {
  if (std::ranges::equal(got, wanted)) return;
  throw std::invalid_argument(fmt::format("{}: wanted shape {}, got {}", name,
                                          shape_text({wanted.begin(), wanted.size()}),
                                          shape_text(got)));
}

void expect(bool condition, std::string_view name, std::string_view wanted, double got) {
  if (!condition) refuse(name, wanted, got);
}

void refuse(std::string_view name, std::string_view wanted, double got) {
  throw std::invalid_argument(fmt::format("{}: wanted {}, got {}", name, wanted, got));
}

}  // namespace t2t
