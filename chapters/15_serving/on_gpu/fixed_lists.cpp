#include "15_serving/on_gpu/fixed_lists.hpp"

#include <algorithm>
#include <string>

#include "shapes.hpp"

namespace t2t {

static std::vector<std::size_t> begins_of(std::span<const std::size_t> max_sizes) {
  std::vector<std::size_t> begins = {0};
  for (const std::size_t elements : max_sizes) begins.push_back(begins.back() + elements);
  return begins;
}

FixedLists::FixedLists(std::span<const std::size_t> max_sizes)
    : begins_(begins_of(max_sizes)), staged_(begins_.back()), device_(begins_.back()) {}

void FixedLists::set(std::size_t i, std::span<const int> elements) {
  const std::size_t room = begins_[i + 1] - begins_[i];
  expect(elements.size() <= room, "elements of a list", "at most " + std::to_string(room),
         elements.size());
  std::ranges::copy(elements, staged_.begin() + long(begins_[i]));
  if (i + 2 == begins_.size()) of_last_ = elements.size();
}

}  // namespace t2t
