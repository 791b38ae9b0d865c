// Copies between a page's parts, which lie a whole store apart, and memory where they are
// contiguous. A thread block copies a store's part, 16 bytes for each thread at a time.
#include <string>

#include "11_flash_attention/kernels/rows/row_kernels.hpp"
#include "11_flash_attention/kernels/tile_checks.hpp"
#include "15_serving/kernels/page_copies.hpp"
#include "cuda/kernel.hpp"
#include "shapes.hpp"

namespace t2t {

namespace {

constexpr int threads = 128;

/// The grid is [stores].
__global__ void copy_parts(const bf16* from, std::size_t from_stride, bf16* to,
                           std::size_t to_stride, std::size_t page) {
  from += blockIdx.x * from_stride, to += blockIdx.x * to_stride;
  for (std::size_t i = 8 * threadIdx.x; i < page; i += 8 * threads)
    *reinterpret_cast<uint4*>(to + i) = *reinterpret_cast<const uint4*>(from + i);
}

/// Where a page of the first store begins. Throws unless the kernel can copy it.
bf16* checked_page(const PageStore& store, std::size_t number, const bf16* packed) {
  expect_size("stores", store.stores);
  expect(number < std::size_t(store.pages), "page", "below " + std::to_string(store.pages), number);
  expect(store.page_elements >= 8 && store.page_elements % 8 == 0, "elements of a page",
         "a multiple of 8", store.page_elements);
  expect_rows("store", store.rows, Strides{0, 0, 0}, sizeof(bf16));
  expect_rows("packed", packed, Strides{0, 0, 0}, sizeof(bf16));
  return store.rows + number * store.page_elements;
}

}  // namespace

void pack_page(const PageStore& store, std::size_t number, bf16* packed) {
  const bf16* page = checked_page(store, number, packed);
  T2T_LAUNCH(copy_parts, dim3(unsigned(store.stores)), dim3(threads), 0, page,
             std::size_t(store.pages) * store.page_elements, packed, store.page_elements,
             store.page_elements);
}

void unpack_page(const PageStore& store, std::size_t number, const bf16* packed) {
  bf16* page = checked_page(store, number, packed);
  T2T_LAUNCH(copy_parts, dim3(unsigned(store.stores)), dim3(threads), 0, packed,
             store.page_elements, page, std::size_t(store.pages) * store.page_elements,
             store.page_elements);
}

}  // namespace t2t
