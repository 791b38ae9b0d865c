// A page's keys and values of all layers, side by side: for copies of pages. One launch and one
// copy then take the place of a copy for each layer and head.
#pragma once

#include <cstddef>

#include "cuda/half_types.hpp"

namespace t2t {

/// Pages of several stores, such as all layers' groups of keys, in device memory.
struct PageStore {
  bf16* rows;  // [stores, pages, page]
  int stores, pages;
  std::size_t page;  // elements of a page in one store: a multiple of 8
};

/// packed [stores, page] becomes what the stores have in a page, and back. Throw
/// std::invalid_argument for a page that is not there, and for sizes and pointers that the kernel
/// cannot take.
void pack_page(const PageStore& store, std::size_t number, bf16* packed);
void unpack_page(const PageStore& store, std::size_t number, const bf16* packed);

}  // namespace t2t
