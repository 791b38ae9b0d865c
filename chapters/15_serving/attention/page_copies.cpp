// Pages that are copied to other memory, to other pages, and back.
#include <fmt/core.h>

#include <algorithm>
#include <stdexcept>

#include "15_serving/attention/paged_attention.hpp"
#include "shapes.hpp"

namespace t2t {

using UseBytes = std::function<void(std::span<std::byte>)>;

/// Part `at` of `parts` equal parts of some memory.
template <typename T>
static std::span<std::byte> part_of(T& memory, std::size_t at, std::size_t parts) {
  const std::size_t size = memory.size() / parts;
  return std::as_writable_bytes(std::span(memory.data() + at * size, size));
}

static void use_part(QuantizedHeads& heads, std::size_t at, std::size_t parts,
                     const UseBytes& use) {
  use(part_of(heads.q, at, parts)), use(part_of(heads.scales, at, parts));
  use(part_of(heads.minima, at, parts));
}

/// The pieces of memory that a page consists of: in each layer, its keys and values of each head.
void PagedAttention::for_each_part(std::size_t number, const UseBytes& use) {
  if (number >= pages_)
    throw std::invalid_argument(fmt::format("page: wanted below {}, got {}", pages_, number));
  for (std::size_t l = 0; l < settings_.size(); ++l)
    for (std::size_t g = 0; g < settings_[l].G; ++g) {
      const std::size_t at = g * pages_ + number, parts = settings_[l].G * pages_;
      if (bits_ < 32) {
        use_part(quantized_[l].keys, at, parts, use),
            use_part(quantized_[l].values, at, parts, use);
      } else {
        use(part_of(keys_[l], at, parts)), use(part_of(values_[l], at, parts));
      }
    }
}

std::vector<std::byte> PagedAttention::copy_of(std::size_t number) {
  std::vector<std::byte> copy;
  copy.reserve(std::size_t(bytes_of_a_page()));
  for_each_part(number, [&](std::span<std::byte> part) {
    copy.insert(copy.end(), part.begin(), part.end());
  });
  return copy;
}

void PagedAttention::put(std::size_t number, std::span<const std::byte> copy) {
  expect(double(copy.size()) == bytes_of_a_page(), "bytes of a page",
         fmt::format("{:.0f}", bytes_of_a_page()), copy.size());
  for_each_part(number, [&](std::span<std::byte> part) {
    std::ranges::copy(copy.first(part.size()), part.begin());
    copy = copy.subspan(part.size());
  });
}

}  // namespace t2t
