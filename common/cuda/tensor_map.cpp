#include "cuda/tensor_map.hpp"

#include <stdexcept>
#include <string>

namespace t2t {
namespace {

void expect(bool holds, const std::string& what, const std::string& wanted, std::int64_t got) {
  if (holds) return;
  throw std::invalid_argument("tensor_map: " + what + ": wanted " + wanted + ", got " +
                              std::to_string(got));
}

}  // namespace

MapDimensions map_dimensions(const HeadRows& rows) {
  const auto expect_size = [](const char* what, int size) {
    expect(size >= 1, what, "at least 1", size);
  };
  expect_size("B", rows.B);
  expect_size("T", rows.T);
  expect_size("heads", rows.heads);
  expect(rows.D > 0 && rows.D % 64 == 0, "D", "a multiple of 64", rows.D);
  expect(rows.box_tokens >= 1 && rows.box_tokens <= 256, "box_tokens", "1 to 256", rows.box_tokens);
  // The stride of a dimension of size 1 is never used; the hardware refuses 0 all the same.
  const auto bytes = [](const char* what, std::int64_t stride, int size) {
    const std::int64_t used = size == 1 ? 16 : 2 * stride;
    expect(used > 0 && used % 16 == 0 && used < std::int64_t{1} << 40, what,
           "a multiple of 8 elements, above 0 and below 2^39", stride);
    return used;
  };
  const auto address = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(rows.data) % 16);
  expect(rows.data != nullptr && address == 0, "address of the data, modulo 16", "0", address);
  return {{64, rows.T, rows.D / 64, rows.heads, rows.B},
          {2, bytes("token_stride", rows.token_stride, rows.T), 128,
           bytes("head_stride", rows.head_stride, rows.heads),
           bytes("batch_stride", rows.batch_stride, rows.B)},
          {64, rows.box_tokens, rows.D / 64, 1, 1}};
}

}  // namespace t2t
