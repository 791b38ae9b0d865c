#include "15_serving/engine/sequence.hpp"

#include <fmt/core.h>

#include "shapes.hpp"

namespace t2t {

void expect_token(const char* name, int id, std::size_t V) {
  expect(id >= 0 && std::size_t(id) < V, name, fmt::format("0 to {}", V - 1), id);
}

}  // namespace t2t
