#include "15_serving/attention/paged_attention.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <stdexcept>

#include "memory.hpp"
#include "rows.hpp"
#include "shapes.hpp"

namespace t2t {

PagedAttention::PagedAttention(std::span<const BlockSettings> layers, std::size_t S,
                               std::size_t max_run_rows, std::size_t sequences, std::size_t pages,
                               std::size_t page_size, std::size_t bits)
    : layers_(layers, S, max_run_rows),
      settings_(layers.begin(), layers.end()),
      pages_(pages),
      page_size_(page_size),
      bits_(bits) {
  expect(sequences >= 1, "sequences", "at least 1", sequences);
  expect(pages >= 1, "pages", "at least 1", pages);
  expect(page_size >= 1, "positions of a page", "at least 1", page_size);
  expect(bits == 32 || bits == 8 || bits == 4, "bits of a key or value", "32, 8 or 4", bits);
  expect_memory(double(pages) * bytes_of_a_page(), "the pages of all layers",
                "ask for fewer pages");
  tables.resize(sequences);
  for (const BlockSettings& s : layers)
    if (bits == 32) {
      keys_.push_back(empty(pages * s.G * page_size * s.D));
      values_.push_back(empty(pages * s.G * page_size * s.D));
    } else {
      quantized_.emplace_back(bits, s.G, pages, page_size, s.D);
    }
}

double PagedAttention::bytes_of_a_page() const {
  double bytes = 0;
  for (const BlockSettings& s : settings_) {
    const double row = bits_ == 32 ? double(sizeof(float)) * double(s.D)
                                   : quantized_number_bytes(bits_) * double(whole_blocks(s.D));
    bytes += 2 * double(s.G) * double(page_size_) * row;
  }
  return bytes;
}

PagedLayer PagedAttention::layer_of(std::size_t layer) const {
  const BlockSettings& s = settings_[layer];
  if (bits_ < 32) return {nullptr, nullptr, pages_, page_size_, s.G, s.D, &quantized_[layer]};
  return {keys_[layer].data(), values_[layer].data(), pages_, page_size_, s.G, s.D};
}

void PagedAttention::expect_pages(const Run& run) const {
  const PageTable& table = tables[run.sequence];
  if (table.size() * page_size_ < run.position + run.rows)
    throw std::invalid_argument(fmt::format(
        "sequence {}: wanted pages for {} positions, got {} page(s) of {} positions each",
        run.sequence, run.position + run.rows, table.size(), page_size_));
  for (const std::size_t number : table)
    if (number >= pages_)
      throw std::invalid_argument(
          fmt::format("sequence {}: wanted pages below {}, got {}", run.sequence, pages_, number));
}

/// Writes the keys and values of row t to an offset in a page.
void PagedAttention::store_row(const Projected& in, std::size_t t, std::size_t number,
                               std::size_t offset) {
  const std::size_t l = in.block.layer(), G = settings_[l].G, D = settings_[l].D;
  if (bits_ < 32) {
    store_rows(in.k.rows_from(t, 1), number * page_size_ + offset, quantized_[l].keys);
    store_rows(in.v.rows_from(t, 1), number * page_size_ + offset, quantized_[l].values);
    return;
  }
  for (std::size_t g = 0; g < G; ++g) {
    const std::size_t at = ((g * pages_ + number) * page_size_ + offset) * D;
    std::ranges::copy(in.k.head(g, D).row(t), keys_[l].data() + at);
    std::ranges::copy(in.v.head(g, D).row(t), values_[l].data() + at);
  }
}

/// Writes the new keys and values to the pages of their sequences.
void PagedAttention::store(const Projected& in) {
  for_each_run(in.runs, [&](const Run& run, std::size_t first) {
    for_each_row(run.rows, 2 * in.k.cols, [&](std::size_t t) {
      const std::size_t s = run.position + t;
      store_row(in, first + t, tables[run.sequence][s / page_size_], s % page_size_);
    });
  });
}

void PagedAttention::operator()(const Projected& in, Matrix heads, const Trace& trace) {
  layers_.expect_call(in, heads, tables.size());
  for (const Run& run : in.runs) expect_pages(run);
  layers_.rotate(in, trace);
  store(in);
  runs_.clear();
  for_each_run(in.runs, [&](const Run& run, std::size_t first) {
    runs_.push_back({first, run.rows, run.position, tables[run.sequence]});
  });
  paged_attention_rows(in.q, runs_, layer_of(in.block.layer()), rule_of(in.block.settings()), heads,
                       scratch_);
}

}  // namespace t2t
