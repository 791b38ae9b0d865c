#include "15_serving/pages/page_pool.hpp"

#include <fmt/core.h>

#include <stdexcept>

#include "shapes.hpp"

namespace t2t {

PagePool::PagePool(std::size_t pages) : references_(pages, 0) {
  expect(pages >= 1, "pages", "at least 1", 0);
  for (std::size_t page = pages; page > 0; --page) free_.push_back(page - 1);
}

std::size_t PagePool::references(std::size_t page) const {
  if (page >= pages())
    throw std::invalid_argument(fmt::format("page: wanted below {}, got {}", pages(), page));
  return references_[page];
}

std::size_t PagePool::take() {
  if (free_.empty()) throw std::runtime_error("no page is free");
  const std::size_t page = free_.back();
  free_.pop_back();
  references_[page] = 1;
  return page;
}

void PagePool::share(std::size_t page) {
  if (references(page) == 0)
    throw std::invalid_argument(
        fmt::format("page {}: wanted one with references, got a free one", page));
  ++references_[page];
}

void PagePool::give_back(std::size_t page) {
  if (references(page) == 0)
    throw std::invalid_argument(
        fmt::format("page {}: wanted one with references, got a free one", page));
  if (--references_[page] == 0) free_.push_back(page);
}

}  // namespace t2t
