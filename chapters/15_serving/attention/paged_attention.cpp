#include "15_serving/attention/paged_attention.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <stdexcept>

#include "memory.hpp"
#include "shapes.hpp"

namespace t2t {

PagedAttention::PagedAttention(std::span<const BlockSettings> layers, std::size_t S,
                               std::size_t T_max, std::size_t texts, std::size_t pages,
                               std::size_t page)
    : layers_(layers, S, T_max),
      settings_(layers.begin(), layers.end()),
      pages_(pages),
      page_(page) {
  expect(texts >= 1, "texts", "at least 1", double(texts));
  expect(pages >= 1, "pages", "at least 1", double(pages));
  expect(page >= 1, "positions of a page", "at least 1", double(page));
  tables.resize(texts);
  double bytes = 0;
  for (const BlockSettings& s : layers)
    bytes += 2.0 * sizeof(float) * double(pages) * double(page) * double(s.G) * double(s.D);
  expect_memory(bytes, "the pages of all layers", "ask for fewer pages");
  for (const BlockSettings& settings : layers) {
    keys_.push_back(empty(pages * settings.G * page * settings.D));
    values_.push_back(empty(pages * settings.G * page * settings.D));
  }
}

std::size_t PagedAttention::bytes_of_a_page() const {
  std::size_t floats = 0;
  for (const BlockSettings& settings : settings_) floats += 2 * settings.G * page_ * settings.D;
  return floats * sizeof(float);
}

PagedHeads PagedAttention::heads_of(std::size_t layer) const {
  return {keys_[layer].data(), values_[layer].data(), pages_, page_,
          settings_[layer].G,  settings_[layer].D};
}

void PagedAttention::expect_pages(const Run& run) const {
  const PageTable& table = tables[run.text];
  if (table.size() * page_ < run.position + run.rows)
    throw std::invalid_argument(
        fmt::format("text {}: wanted pages for {} positions, got {} pages of {}", run.text,
                    run.position + run.rows, table.size(), page_));
  for (const std::size_t number : table)
    if (number >= pages_)
      throw std::invalid_argument(
          fmt::format("text {}: wanted pages below {}, got {}", run.text, pages_, number));
}

/// Writes the new keys and values to the pages of their texts.
void PagedAttention::store(const Projected& in) {
  const std::size_t l = in.block.layer(), G = settings_[l].G, D = settings_[l].D;
  for_each_run(in.runs, [&](const Run& run, std::size_t first) {
    for (std::size_t t = 0; t < run.rows; ++t) {
      const std::size_t s = run.position + t, number = tables[run.text][s / page_];
      for (std::size_t g = 0; g < G; ++g) {
        const std::size_t at = ((g * pages_ + number) * page_ + s % page_) * D;
        std::ranges::copy(in.k.head(g, D).row(first + t), keys_[l].data() + at);
        std::ranges::copy(in.v.head(g, D).row(first + t), values_[l].data() + at);
      }
    }
  });
}

void PagedAttention::operator()(const Projected& in, Matrix heads, const Trace& trace) {
  layers_.expect_call(in, heads, tables.size());
  for (const Run& run : in.runs) expect_pages(run);
  layers_.turn(in, trace);
  store(in);
  runs_.clear();
  for_each_run(in.runs, [&](const Run& run, std::size_t first) {
    runs_.push_back({first, run.rows, run.position, tables[run.text]});
  });
  paged_attention_rows(in.q, runs_, heads_of(in.block.layer()), rule_of(in.block.settings()), heads,
                       scratch_);
}

}  // namespace t2t
