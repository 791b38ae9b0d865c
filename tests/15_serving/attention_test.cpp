// What must be true of attention over pages: the formula's numbers, and the same bits however a
// sequence is cut.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <stdexcept>
#include <vector>

#include "06_gqa/grouped_query_attention.hpp"
#include "09_language_model/cases.hpp"
#include "12_quantization/cache/quantized_attention.hpp"
#include "12_quantization/cache/quantized_cache.hpp"
#include "13_training/differences.hpp"
#include "15_serving/attention/paged_attention.hpp"
#include "15_serving/attention/paged_rows.hpp"
#include "15_serving/products/batch_invariant.hpp"
#include "linalg.hpp"
#include "rows.hpp"
#include "support/all_close.hpp"
#include "support/first_difference.hpp"
#include "support/hashed_numbers.hpp"
#include "support/refuses.hpp"

namespace t2t::attention_test {

using std::size_t;

/// Keys and values of one sequence, [S, G·D], in pages that lie in another order, among pages of
/// NaN.
struct Paged {
  size_t pages, page_size, G, D;
  std::vector<float> keys, values;  // [G, pages, page_size, D]
  PageTable table;

  Paged(const Tensor<2>& k, const Tensor<2>& v, size_t G, size_t page_size)
      : pages(2 * ((k.shape(0) + page_size - 1) / page_size) + 1),
        page_size(page_size),
        G(G),
        D(k.shape(1) / G) {
    keys.assign(pages * G * page_size * D, std::numeric_limits<float>::quiet_NaN());
    values = keys;
    for (size_t number = pages - 1; number > 1; number -= 2) table.push_back(number - 1);
    for (size_t s = 0; s < k.shape(0); ++s)
      for (size_t g = 0; g < G; ++g) {
        const size_t at = ((g * pages + table[s / page_size]) * page_size + s % page_size) * D;
        std::copy_n(&k(s, g * D), D, &keys[at]);
        std::copy_n(&v(s, g * D), D, &values[at]);
      }
  }
  PagedLayer layer() const { return {keys.data(), values.data(), pages, page_size, G, D}; }
};

TEST_CASE("by hand: pages in any order, and the last position of one that is not full") {
  // One head, D = 1: keys ln 1, ln 2, ln 3 of positions 0, 1, 2 lie in pages 1 and 0, of two
  // places.
  const float ln2 = std::log(2.0f), ln3 = std::log(3.0f), none = 1e30f;
  const float keys[] = {ln3, none, 0, ln2}, values[] = {12, none, 6, 0};
  const PagedLayer layer{keys, values, 2, 2, 1, 1};
  const PageTable table = {1, 0};
  const Tensor<2> q = {{1}};
  Tensor<2> out = {{0}};
  PagedScratch scratch;
  const PagedRun run{0, 1, 2, table};
  paged_attention_rows(q, {&run, 1}, layer, Mask::causal, out, scratch);
  CHECK(out(0, 0) == doctest::Approx((1 * 6 + 2 * 0 + 3 * 12) / 6.0));
  CHECK(paged_attention(q, run, layer, Mask::causal)(0, 0) == doctest::Approx(7));
  const PagedRun of_two{0, 1, 1, table};  // the query at position 1 does not see position 2
  paged_attention_rows(q, {&of_two, 1}, layer, Mask::causal, out, scratch);
  CHECK(out(0, 0) == doctest::Approx(2));
}

/// The rows of one sequence, computed in calls of `chunk` queries.
static Tensor<2> in_chunks(const Tensor<2>& q, const PagedLayer& layer, const PageTable& table,
                           size_t chunk, const ScoreRule& rule) {
  Tensor<2> out = empty(q.shape(0), q.shape(1));
  PagedScratch scratch;
  for (size_t t = 0; t < q.shape(0); t += chunk) {
    const size_t rows = std::min(chunk, q.shape(0) - t);
    const PagedRun run{0, rows, t, table};
    paged_attention_rows(ConstMatrix(q).rows_from(t, rows), {&run, 1}, layer, rule,
                         Matrix(out).rows_from(t, rows), scratch);
  }
  return out;
}
static Tensor<2> in_chunks(const Tensor<2>& q, const Paged& paged, size_t chunk,
                           const ScoreRule& rule) {
  return in_chunks(q, paged.layer(), paged.table, chunk, rule);
}

#if defined(__SANITIZE_ADDRESS__)  // it is slow: one size of page shows what several do
static constexpr size_t many_pages[] = {7}, many_chunks[] = {7, 100};
static constexpr size_t few_pages[] = {7}, few_chunks[] = {7, 512};
#else
static constexpr size_t many_pages[] = {16, 7, 64}, many_chunks[] = {1, 7, 64, 100, 512};
static constexpr size_t few_pages[] = {16, 7}, few_chunks[] = {1, 7, 512};
#endif

TEST_CASE("the kernel is the formula, and the same bits for any chunks, pages and threads") {
  const size_t S = 530, G = 2, H = 6;
  const int threads = int(thread_count());
  for (const size_t D : {64, 10})
    for (const ScoreRule& rule : {ScoreRule{Mask::causal}, ScoreRule{Mask::sliding(100)},
                                  ScoreRule{Mask::causal, 0.2f, 3.0f}}) {
      CAPTURE(D);
      CAPTURE(rule.mask.window);
      const Tensor<2> q = numbers(3, 2, 0, S, H * D), k = numbers(1, 2, 0, S, G * D),
                      v = numbers(2, 2, 0, S, G * D);
      const Paged first(k, v, G, 16);
      const Tensor<2> want = in_chunks(q, first, S, rule);
      // Scores below 8 are rounded like sums of D; the weights carry their error on.
      CHECK(all_close(want, paged_attention(q, {0, S, 0, first.table}, first.layer(), rule),
                      rounding(8 * D, 2)));
      for (const size_t page_size : many_pages)
        for (const size_t chunk : many_chunks) {
          set_threads(chunk % 2 == 0 ? 1 : 3);
          CAPTURE(page_size);
          CAPTURE(chunk);
          const Tensor<2> got = in_chunks(q, Paged(k, v, G, page_size), chunk, rule);
          INFO(first_difference(row(got, S - 1), row(want, S - 1)));
          CHECK(all_close(got, want, 0));
        }
      set_threads(threads);
    }
}

/// The same pages in fewer bits, and as the floats that these mean.
struct Quantized {
  Paged floats;
  QuantizedPages pages;

  Quantized(const Tensor<2>& k, const Tensor<2>& v, size_t G, size_t page_size, size_t bits)
      : floats(k, v, G, page_size), pages(bits, G, floats.pages, page_size, floats.D) {
    for (size_t s = 0; s < k.shape(0); ++s) {
      const size_t at = floats.table[s / page_size] * page_size + s % page_size;
      store_rows(ConstMatrix(k).rows_from(s, 1), at, pages.keys);
      store_rows(ConstMatrix(v).rows_from(s, 1), at, pages.values);
      for (size_t g = 0; g < G; ++g)
        load_one(pages.keys, g, at, floats.keys), load_one(pages.values, g, at, floats.values);
    }
  }
  static void load_one(const QuantizedHeads& from, size_t g, size_t at, std::vector<float>& to) {
    Tensor<2> one = empty(1, whole_blocks(from.D));
    load_rows(from, g, at, one);
    std::copy_n(one.data(), from.D, &to[(g * from.S + at) * from.D]);
  }
  PagedLayer layer() const {
    return {nullptr, nullptr, floats.pages, floats.page_size, floats.G, floats.D, &pages};
  }
};

TEST_CASE("pages of 8 or 4 bits: the bits of pages that hold the quantized numbers as floats") {
  const size_t S = 530, G = 2, H = 6;
  const int threads = int(thread_count());
  for (const size_t bits : {8, 4})
    for (const size_t D : {64, 40, 10})
      for (const Mask& mask : {Mask(Mask::causal), Mask::sliding(100)}) {
        CAPTURE(bits);
        CAPTURE(D);
        CAPTURE(mask.window);
        const Tensor<2> q = numbers(3, 2, 0, S, H * D), k = numbers(1, 2, 0, S, G * D),
                        v = numbers(2, 2, 0, S, G * D);
        for (const size_t page_size : few_pages) {
          const Quantized quantized(k, v, G, page_size, bits);
          for (const size_t chunk : few_chunks) {
            CAPTURE(page_size);
            CAPTURE(chunk);
            set_threads(chunk % 2 == 0 ? 1 : 3);
            const Tensor<2> got =
                in_chunks(q, quantized.layer(), quantized.floats.table, chunk, mask);
            const Tensor<2> want = in_chunks(q, quantized.floats, chunk, mask);
            INFO(first_difference(row(got, S - 1), row(want, S - 1)));
            CHECK(all_close(got, want, 0));
          }
        }
      }
  set_threads(threads);
}

TEST_CASE("quantized pages: several texts in a call, and no formula") {
  const size_t G = 2, H = 6, D = 64;
  const Tensor<2> k = numbers(1, 2, 0, 530, G * D), v = numbers(2, 2, 0, 530, G * D),
                  q = numbers(3, 2, 0, 8, H * D);
  const Quantized quantized(k, v, G, 16, 8);
  // The second sequence has the pages of the first in another order.
  PageTable other(quantized.floats.table.rbegin() + 1, quantized.floats.table.rend());
  const std::vector<PagedRun> runs = {{0, 1, 520, quantized.floats.table}, {1, 7, 250, other}};
  Tensor<2> got = empty(8, H * D), want = got;
  PagedScratch scratch;
  paged_attention_rows(q, runs, quantized.layer(), Mask::causal, got, scratch);
  paged_attention_rows(q, runs, quantized.floats.layer(), Mask::causal, want, scratch);
  CHECK(all_close(got, want, 0));
  REFUSES(paged_attention(q, {0, 8, 0, other}, quantized.layer(), Mask::causal),
          "pages: wanted floats, got quantized numbers");
}

TEST_CASE("batch-invariant products: those of floats, and the same bits for one row and for many") {
  for (const size_t K : {1, 31, 576}) {
    CAPTURE(K);
    const Tensor<2> x = numbers(5, 2, 0, 61, K), w = numbers(6, 2, 0, 70, K);
    const Weight invariant = batch_invariant(w);
    const Tensor<2> all = matmul_bt(x, invariant);
    // Partial sums stay below 16, and each is rounded once, up about as often as down.
    CHECK(all_close(all, matmul_bt(x, w), 4 * rounding(K, 16)));
    for (const size_t t : {0, 24, 60})
      CHECK(all_close(matmul_bt(rows_of(x, t, 1), invariant), rows_of(all, t, 1), 0));
    CHECK(all_close(matmul_bt(rows_of(x, 20, 9), invariant), rows_of(all, 20, 9), 0));
    Tensor<1> row_5 = empty(K);
    invariant.row(5, row(row_5));
    CHECK(std::ranges::equal(row_5, row(w, 5)));
  }
}

/// A block's attention over pages of four positions, for two sequences.
struct Slot {
  explicit Slot(size_t bits = 32) : paged({&c.config.block, 1}, 20, 8, 2, 6, 4, bits) {}

  Case c = llama();
  PagedAttention paged;
  BlockWeights weights = c.weights().blocks[0];
  Block block{c.config.block, weights};
  Tensor<2> q = numbers(1, 2, 0, 8, c.config.block.H* c.config.block.D);
  Tensor<2> k = numbers(2, 2, 0, 8, c.config.block.G* c.config.block.D);
  Tensor<2> v = numbers(3, 2, 0, 8, c.config.block.G* c.config.block.D);
  Tensor<2> out = xt::zeros_like(q);

  void call(const std::vector<Run>& runs) {
    size_t T = 0;
    for (const Run& run : runs) T += run.rows;
    paged({block, Runs(runs.data(), runs.size()), Matrix(q).rows_from(0, T),
           Matrix(k).rows_from(0, T), Matrix(v).rows_from(0, T)},
          Matrix(out).rows_from(0, T), {});
  }
};

TEST_CASE("the slot refuses a table that is too short or names no page, before it writes") {
  Slot slot;
  slot.paged.tables = {{0}, {1, 2}};
  const Tensor<2> before = slot.k;
  REFUSES(slot.call({{0, 0, 5}}),
          "sequence 0: wanted pages for 5 positions, got 1 page(s) of 4 positions each");
  slot.paged.tables[0] = {0, 6};
  REFUSES(slot.call({{0, 0, 5}}), "sequence 0: wanted pages below 6, got 6");
  CHECK(all_close(slot.k, before, 0));  // not turned
  CHECK(all_close(slot.out, xt::zeros_like(slot.out), 0));
  slot.paged.tables[0] = {5, 3};
  CHECK_NOTHROW(slot.call({{0, 0, 5}, {1, 4, 3}}));
}

/// The slot's calls for two sequences give the numbers of another slot with a cache for each
/// sequence.
static void expect_like(Slot& slot, const Attention& cached) {
  slot.paged.tables = {{5, 0, 2}, {3, 4}};
  const Tensor<2> q = slot.q, k = slot.k;
  for (const std::vector<Run>& runs :
       {std::vector<Run>{{0, 0, 6}, {1, 0, 2}}, {{1, 2, 5}, {0, 6, 1}}, {{0, 7, 5}}}) {
    size_t T = 0;
    for (const Run& run : runs) T += run.rows;
    CAPTURE(runs[0].position);
    slot.q = q, slot.k = k;
    slot.call(runs);
    Tensor<2> q_cached = q, k_cached = k, want = xt::zeros_like(q);
    cached({slot.block, Runs(runs.data(), runs.size()), Matrix(q_cached).rows_from(0, T),
            Matrix(k_cached).rows_from(0, T), Matrix(slot.v).rows_from(0, T)},
           Matrix(want).rows_from(0, T), {});
    CHECK(all_close(rows_of(slot.out, 0, T), rows_of(want, 0, T), rounding(8 * 8, 2)));
  }
}

TEST_CASE("the slot writes each position to its page: the numbers of chapter 08's caches") {
  Slot slot;
  CachedAttention cached({&slot.c.config.block, 1}, 20, 8, 2);
  expect_like(slot, std::ref(cached));
}

TEST_CASE("the slot quantizes keys and values as chapter 12's cache does") {
  for (const size_t bits : {8, 4}) {
    CAPTURE(bits);
    Slot slot(bits);
    QuantizedAttention cached({&slot.c.config.block, 1}, 20, 8, 2, bits);
    expect_like(slot, std::ref(cached));
  }
}

TEST_CASE("a page is copied out, and put back in another place: the same numbers") {
  for (const size_t bits : {32, 8, 4}) {
    CAPTURE(bits);
    Slot slot(bits), moved(bits);
    slot.paged.tables[0] = {5, 0}, moved.paged.tables[0] = {1, 2};
    const Tensor<2> q = slot.q, k = slot.k;
    slot.call({{0, 0, 6}});
    for (const size_t i : {0, 1})
      moved.paged.put(moved.paged.tables[0][i], slot.paged.copy_of(slot.paged.tables[0][i]));
    slot.q = q, slot.k = k;
    slot.call({{0, 6, 2}}), moved.call({{0, 6, 2}});
    CHECK(all_close(rows_of(moved.out, 0, 2), rows_of(slot.out, 0, 2), 0));
    const std::vector<std::byte> bytes = slot.paged.copy_of(5);
    CHECK(double(bytes.size()) == slot.paged.bytes_of_a_page());
    REFUSES(slot.paged.copy_of(6), "page: wanted below 6, got 6");
    REFUSES(slot.paged.put(6, bytes), "page: wanted below 6, got 6");
    const std::span short_one = std::span(bytes).first(bytes.size() - 1);
    REFUSES(slot.paged.put(0, short_one), "bytes of a page: wanted " +
                                              std::to_string(bytes.size()) + ", got " +
                                              std::to_string(bytes.size() - 1));
  }
}

TEST_CASE("more pages than there is memory for are refused before any is taken") {
  const BlockSettings settings = llama().config.block;
  CHECK_THROWS_AS(PagedAttention({&settings, 1}, 20, 8, 2, std::size_t(1) << 50, 16),
                  std::runtime_error);
  REFUSES(PagedAttention({&settings, 1}, 20, 8, 0, 6, 4), "sequences: wanted at least 1, got 0");
  REFUSES(PagedAttention({&settings, 1}, 20, 8, 2, 0, 4), "pages: wanted at least 1, got 0");
  REFUSES(PagedAttention({&settings, 1}, 20, 8, 2, 6, 0),
          "positions of a page: wanted at least 1, got 0");
  REFUSES(PagedAttention({&settings, 1}, 20, 8, 2, 6, 4, 16),
          "bits of a key or value: wanted 32, 8 or 4, got 16");
}

TEST_CASE("a page holds the keys and values of all layers") {
  const BlockSettings settings = llama().config.block;
  const double places = double(2 * 4 * settings.G);  // of keys and values
  CHECK(Slot().paged.bytes_of_a_page() == places * 4 * double(settings.D));
  const double blocks = double((settings.D + 31) / 32);
  CHECK(Slot(8).paged.bytes_of_a_page() == places * blocks * (32 + 2));
  CHECK(Slot(4).paged.bytes_of_a_page() == places * blocks * (16 + 4));
}

}  // namespace t2t::attention_test
