// A page's keys or values of all layers, in contiguous memory: for copies of pages. One launch and
// one copy then take the place of a copy for each layer and head.
#pragma once

#include <cstddef>

#include "cuda/half_types.hpp"

namespace t2t {

/// The pages of all layers' keys, or of all layers' values, in device memory. Each group of heads
/// of each layer has a part of its own, a store.
struct PageStore {
  bf16* rows;  // [stores, pages, page_elements]
  int stores, pages;
  std::size_t page_elements;  // of a page in one store: a multiple of 8
};

/// pack_page copies page `number` of every store to `packed`, which is contiguous; unpack_page
/// copies it back. Both throw std::invalid_argument for a page that does not exist, and for sizes
/// and pointers that the kernel cannot take.
void pack_page(const PageStore& store, std::size_t number,
               bf16* packed);  // [stores, page_elements]
void unpack_page(const PageStore& store, std::size_t number, const bf16* packed);

}  // namespace t2t
