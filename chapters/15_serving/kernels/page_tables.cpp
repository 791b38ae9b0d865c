// Checks the tables of a step's sequences, and cuts each sequence into stretches. Runs on the host.
#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <string>

#include "04_causal_attention/kernels/attention_call.hpp"
#include "11_flash_attention/kernels/rows/row_kernels.hpp"
#include "11_flash_attention/kernels/tile_checks.hpp"
#include "15_serving/kernels/kernels.hpp"
#include "shapes.hpp"

namespace t2t {

static constexpr int most = std::numeric_limits<int>::max();

static int count_of(int positions, int piece) {
  return positions / piece + (positions % piece > 0 ? 1 : 0);
}

/// Throws unless sequence b's table names pages of the cache, and enough of them.
static void expect_table(std::size_t b, const std::vector<std::size_t>& table, long length,
                         int pages, int page_size) {
  const int longest = most - gpu_stretch;  // a step past the last stretch must also fit an int
  if (length < 1 || length > longest)
    throw std::invalid_argument(
        fmt::format("sequence {}: wanted 1 to {} positions, got {}", b, longest, length));
  if (table.size() < std::size_t(count_of(int(length), page_size)))
    throw std::invalid_argument(fmt::format(
        "sequence {}: wanted pages for {} positions, got {} page(s) of {} positions each", b,
        length, table.size(), page_size));
  for (const std::size_t number : table)
    if (number >= std::size_t(pages))
      throw std::invalid_argument(
          fmt::format("sequence {}: wanted pages below {}, got {}", b, pages, number));
}

void expect_tables(std::span<const std::vector<std::size_t>> tables, const char* name,
                   std::size_t count, int pages, int page_size) {
  expect(!tables.empty(), "sequences", "at least 1", 0);
  expect(count == tables.size(), name, std::to_string(tables.size()), count);
  expect_size("pages", pages);
  expect_size("positions of a page", page_size);
}

void add_pages(std::size_t b, const std::vector<std::size_t>& table, long length, int pages,
               int page_size, std::vector<int>& to) {
  expect_table(b, table, length, pages, page_size);
  const std::size_t used = std::size_t(count_of(int(length), page_size));
  expect(used <= std::size_t(most) - to.size(), "pages of all sequences",
         "at most " + std::to_string(most), double(to.size()) + double(used));
  for (const std::size_t number : std::span(table).first(used)) to.push_back(int(number));
}

PagedPlan plan_sequences(std::span<const std::vector<std::size_t>> tables,
                         std::span<const int> lengths, int pages, int page_size, int at_once) {
  expect_tables(tables, "lengths", lengths.size(), pages, page_size);
  expect_size("stretches of a block", at_once);
  PagedPlan plan{pages, page_size, {}, {}, {}, {0}, {}};
  for (std::size_t b = 0; b < tables.size(); ++b) {
    plan.table_at.push_back(int(plan.tables.size()));
    add_pages(b, tables[b], lengths[b], pages, page_size, plan.tables);
    const int stretches = count_of(lengths[b], gpu_stretch), before = plan.stretch_at.back();
    expect(stretches <= most - before, "stretches of all sequences",
           "at most " + std::to_string(most), double(before) + stretches);
    plan.lengths.push_back(lengths[b]);
    plan.stretch_at.push_back(before + stretches);
    for (int first = 0; first < stretches; first += std::min(at_once, stretches - first))
      plan.blocks.push_back({int(b), first, std::min(at_once, stretches - first)});
  }
  return plan;
}

int stretches_at_once(std::span<const int> lengths, int tiles, int slots) {
  constexpr double begin = 0.2, more = 1.03;  // a block's begin, in stretches
  int longest = 1;
  for (const int length : lengths) longest = std::max(longest, count_of(length, gpu_stretch));
  const auto cost = [&](int at_once) {  // in stretches: all rounds of blocks, one after another
    long blocks = 0;
    for (const int length : lengths) blocks += count_of(count_of(length, gpu_stretch), at_once);
    return double((blocks * tiles + slots - 1) / slots) * (at_once + begin);
  };
  double best = cost(1);
  for (int n = 2; n <= longest && n <= 256; ++n) best = std::min(best, cost(n));
  int n = 1;
  while (cost(n) > more * best) ++n;
  return n;
}

PagedSequences::PagedSequences(const PagedPlan& plan)
    : B(int(plan.lengths.size())),
      stretches(plan.stretch_at.back()),
      pages(plan.pages),
      page_size(plan.page_size),
      lengths(std::span(plan.lengths)),
      tables(std::span(plan.tables)),
      table_at(std::span(plan.table_at)),
      stretch_at(std::span(plan.stretch_at)),
      blocks(std::span(plan.blocks)) {}

PagedSequences::operator SequencesOnDevice() const {
  return {B,
          stretches,
          int(blocks.size()),
          pages,
          page_size,
          lengths.data(),
          tables.data(),
          table_at.data(),
          stretch_at.data(),
          blocks.data()};
}

DecodeSizes paged_scratch(std::size_t B, std::size_t stretches, int H, int G, int D) {
  return {stretches * std::size_t(H) * std::size_t(D + 1),
          B * std::size_t(G) * std::size_t(packed_tiles(H / G))};
}

void expect_paged_call(const PagedCall& call) {
  expect_size("G", call.G);
  expect(call.H >= 1 && call.H % call.G == 0, "H", "a multiple of G", call.H);
  expect(call.H <= 65535, "H", "at most 65535", call.H);  // of a grid's blocks along y and z
  expect_tile_width(call.D);
  const Strides strides = row_major(1, call.H, call.D);
  expect_rows("q", call.q, strides, sizeof(bf16));
  expect_rows("keys", call.keys, strides, sizeof(bf16));
  expect_rows("values", call.values, strides, sizeof(bf16));
  expect_rows("out", call.out, strides, sizeof(bf16));
}

void expect_decode_call(const PagedCall& call, const SequencesOnDevice& sequences,
                        const DecodeScratch& scratch) {
  expect_paged_call(call);
  const long rows = long(sequences.B) * call.H;
  expect(rows <= most, "B·H", "at most " + std::to_string(most), rows);
  expect_room(scratch, paged_scratch(std::size_t(sequences.B), std::size_t(sequences.stretches),
                                     call.H, call.G, call.D));
}

}  // namespace t2t
