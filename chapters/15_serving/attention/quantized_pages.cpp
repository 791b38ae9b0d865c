#include "15_serving/attention/quantized_pages.hpp"

#include <algorithm>

namespace t2t {

QuantizedPages::QuantizedPages(std::size_t bits, std::size_t G, std::size_t pages,
                               std::size_t page_size, std::size_t D)
    : keys(make_quantized_heads(bits, G, pages * page_size, D)),
      values(keys),
      page_size(page_size) {}

void load_positions(const QuantizedPages& pages, std::span<const std::size_t> table, std::size_t g,
                    KeyRange positions, Matrix k, Matrix v) {
  for (std::size_t s = positions.begin; s < positions.end;) {
    const std::size_t offset = s % pages.page_size,
                      first = table[s / pages.page_size] * pages.page_size + offset;
    const std::size_t rows = std::min(pages.page_size - offset, positions.end - s);
    load_rows(pages.keys, g, first, k.rows_from(s - positions.begin, rows));
    load_rows(pages.values, g, first, v.rows_from(s - positions.begin, rows));
    s += rows;
  }
}

}  // namespace t2t
