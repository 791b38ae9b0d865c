// What must be true of decode over pages on a GPU; run on the stand-in, and on a GPU where one is.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <string>
#include <vector>

#include "11_flash_attention/kernels/kernels.hpp"
#include "15_serving/gpu_problem.hpp"
#include "support/refuses.hpp"

using namespace t2t;
using std::size_t;
using Table = std::vector<size_t>;

#if defined(__SANITIZE_THREAD__)  // the race detector is slow: a few steps show what many do
static const std::vector<int> sizes = {16, 7}, widths = {64}, group_sizes = {3};
static constexpr int long_text = 300;
static const std::vector<std::string> orders = {"1"};
#else
static const std::vector<int> sizes = {1, 7, 16, 20, 48}, widths = {64, 128},
                              group_sizes = {1, 16, 17};
static constexpr int long_text = 530;
static const std::vector<std::string> orders = {"forward", "reverse", "1", "2"};
#endif

/// Every row, against the formula and against the kernel for the CPU.
static void check(const PagesProblem& p) {
  CAPTURE(p.page_size);
  CAPTURE(p.n.D);
  CAPTURE(p.n.H);
  const std::vector<std::vector<float>> got = run(p);
  PagedScratch scratch;
  for (size_t b = 0; b < p.sequences.size(); ++b) {
    CAPTURE(b);
    CAPTURE(p.lengths[b]);
    const PagedText& sequence = p.sequences[b];
    const PagedRun last{0, 1, sequence.k.shape(0) - 1, p.tables[b]};
    const Tensor<2> want = paged_attention(sequence.q, last, p.layer(), Mask::causal);
    Tensor<2> on_cpu = want;
    paged_attention_rows(sequence.q, {&last, 1}, p.layer(), Mask::causal, on_cpu, scratch);
    const std::vector<double> bound = bounds(sequence, p.n, row(want, 0));
    CHECK(worst(got[b], row(want, 0), bound) <= 1);
    CHECK(worst(got[b], row(on_cpu, 0), bound) <= 1);
  }
}

static std::vector<PagedText> made_texts(const std::vector<int>& lengths, const Heads& n) {
  std::vector<PagedText> sequences;
  for (const int S : lengths) sequences.push_back(made_text(std::uint32_t(sequences.size()), S, n));
  return sequences;
}

TEST_CASE("by hand: three texts whose pages are no neighbours, and two that share them") {
  // One head. A key of 0 has weight 1, and one of −2^13 has weight 0. Pages have two places.
  PagesProblem p = in_pages({}, {1, 1, 64}, 2);
  const Heads n = p.n;
  p.pages = 3, p.keys.assign(3 * 2 * 64, std::nanf("")), p.values = p.keys;
  const auto put = [&](size_t number, size_t place, float key, float value) {
    std::fill_n(&p.keys[(number * 2 + place) * 64], 64, key);
    std::fill_n(&p.values[(number * 2 + place) * 64], 64, value);
  };
  put(2, 0, 0, 6), put(2, 1, -0x1p13f, 100), put(0, 0, 0, 12);  // page 0 has a free place
  p.tables = {{2, 0}, {2}, {0, 1}}, p.lengths = {3, 2, 1};
  p.sequences.assign(3, {numbers(0, 0, 1, size_t(1), size_t(64)), {}, {}});
  const std::vector<std::vector<float>> got = run(p);
  CHECK(got[0] == std::vector<float>(n.of(1), 9));  // the mean of 6 and 12
  CHECK(got[1] == std::vector<float>(n.of(1), 6));
  CHECK(got[2] == std::vector<float>(n.of(1), 12));
}

/// "0:0+2": a block computes sequence 0's stretches from 0 on, 2 of them.
static std::string blocks_of(const PagedPlan& plan) {
  std::string text;
  for (const PagedBlock& block : plan.blocks)
    text += std::to_string(block.sequence) + ":" + std::to_string(block.stretch) + "+" +
            std::to_string(block.count) + " ";
  return text;
}

TEST_CASE("by hand: how texts are cut into stretches") {
  const std::vector<Table> tables = {{4, 0, 3}, {1}, {2, 4, 6, 5}};
  const std::vector<int> lengths = {257, 100, 512};
  const PagedPlan plan = plan_sequences(tables, lengths, 7, 128);
  CHECK(plan.tables == std::vector<int>{4, 0, 3, 1, 2, 4, 6, 5});
  CHECK(plan.table_at == std::vector<int>{0, 3, 4});
  CHECK(plan.stretch_at == std::vector<int>{0, 2, 3, 5});
  CHECK(blocks_of(plan) == "0:0+1 0:1+1 1:0+1 2:0+1 2:1+1 ");
  CHECK(blocks_of(plan_sequences(tables, lengths, 7, 128, 3)) == "0:0+2 1:0+1 2:0+2 ");
  const std::vector<Table> one = {Table(10, 0)};  // 5 stretches
  CHECK(blocks_of(plan_sequences(one, std::vector<int>{1280}, 1, 128, 2)) == "0:0+2 0:2+2 0:4+1 ");
  // A page that no position needs yet is left out.
  CHECK(plan_sequences(tables, std::vector<int>{256, 1, 385}, 7, 128).tables ==
        std::vector<int>{4, 0, 1, 2, 4, 6, 5});
}

TEST_CASE("a block gets as many stretches as keep the GPU busy, and no more") {
  const auto at_once = [](std::size_t B, int S) {  // four groups of heads on an H100
    return stretches_at_once(std::vector<int>(B, S), 4, 264);
  };
  CHECK(at_once(1, 1) == 1);
  CHECK(at_once(1, 16384) == 1);   // 256 blocks have room at once
  CHECK(at_once(8, 1024) == 1);    // 128 blocks
  CHECK(at_once(8, 4096) == 2);    // 512 stretches: one round of 256 blocks instead of two of 264
  CHECK(at_once(64, 1024) == 4);   // one round instead of four
  CHECK(at_once(64, 16384) == 8);  // 8 rounds of 8.2 stretches; the best, 64, is 2 % better
  // One block after another: 392 of 1.2 stretches, or 99 of 4.2. The best are 50 of 8.2.
  CHECK(stretches_at_once(std::vector<int>{100, 100000}, 1, 1) == 4);
}

TEST_CASE("the kernel is the formula: texts that end before, at and after a page's end") {
  for (const int D : widths)
    for (const int page_size : sizes) {
      std::vector<int> lengths = {1, page_size, page_size + 1, 2 * page_size};
      if (page_size > 1) lengths.push_back(page_size - 1);
      const Heads n{4, 2, D};
      check(in_pages(made_texts(lengths, n), n, page_size));
    }
}

TEST_CASE("the kernel is the formula: one stretch, a few, and the ends of stretches") {
  for (const int page_size : {16, 20}) {
    const Heads n{2, 1, 64};
    check(in_pages(made_texts({255, 256, 257, 20, long_text}, n), n, page_size));
  }
}

TEST_CASE("the kernel is the formula: groups of every size, also of more heads than a tile has") {
  for (const int N : group_sizes) {
    const Heads n{2 * N, 2, 64};
    check(in_pages(made_texts({40, 270}, n), n, 16));
  }
}

TEST_CASE("high scores do not overflow, and stretches are weighed by their log-sums") {
  const Heads n{2, 1, 64};
  std::vector<PagedText> sequences = {made_text(1, 300, n, 400), made_text(2, 600, n, 40)};
  // The scores of the second sequence fall from stretch to stretch.
  for (size_t s = 0; s < 600; ++s)
    for (float& number : row(sequences[1].k, s)) number /= s < 256 ? 1.0f : s < 512 ? 4.0f : 16.0f;
  sequences[1].k = rounded(sequences[1].k);
  check(in_pages(sequences, n, 16));
}

TEST_CASE("texts that begin alike may share pages") {
  const Heads n{4, 2, 64};
  for (const int page_size : {16, 5}) {
    std::vector<PagedText> sequences = made_texts({50, 70, 300}, n);
    for (size_t b = 1; b < 3; ++b) {
      sequences[b].shared = size_t(2 * page_size), sequences[b].owner = b - 1;
      for (size_t s = 0; s < sequences[b].shared; ++s) {
        std::ranges::copy(row(sequences[b - 1].k, s), row(sequences[b].k, s).begin());
        std::ranges::copy(row(sequences[b - 1].v, s), row(sequences[b].v, s).begin());
      }
    }
    const PagesProblem p = in_pages(sequences, n, page_size);
    REQUIRE(p.tables[0][1] == p.tables[2][1]);
    REQUIRE(p.tables[0][2] != p.tables[2][2]);
    check(p);
  }
}

TEST_CASE("a text has the same bits alone and in company, for any pages and any order of threads") {
  const Heads n{2, 1, 64};
  const std::vector<PagedText> sequences = made_texts({270, 3, long_text, 256}, n);
  const std::vector<std::vector<float>> together = run(in_pages(sequences, n, 16));
  for (size_t b = 0; b < sequences.size(); ++b) {
    CAPTURE(b);
    for (const int page_size : {sizes[0], sizes[1], 48}) {
      CAPTURE(page_size);
      CHECK(run(in_pages({sequences[b]}, n, page_size))[0] == together[b]);
    }
    CHECK(run(in_pages({sequences[1], sequences[b]}, n, 7))[1] == together[b]);
  }
  const char* set = std::getenv("T2T_ORDER");
  const std::string before = set == nullptr ? "forward" : set;
  for (const char* order : {"reverse", "1"}) {
    CAPTURE(order);
    setenv("T2T_ORDER", order, 1);
    const std::vector<std::vector<float>> other = run(in_pages(sequences, n, 16));
    setenv("T2T_ORDER", before.c_str(), 1);
    CHECK(other == together);
  }
}

TEST_CASE(
    "any number of stretches for a block: the same bits, in any order of blocks and threads") {
  const Heads n{6, 2, 64};
  std::vector<PagedText> sequences = made_texts({long_text, 256, 1024, 200}, n);
  for (size_t s = 0; s < 1024; ++s)  // of four stretches that nearly cancel
    for (float& number : row(sequences[2].v, s)) number += s / 256 % 2 == 0 ? 1000 : -1000;
  sequences[2].v = rounded(sequences[2].v);
  const PagesProblem p = in_pages(sequences, n, 16);
  const std::vector<std::vector<float>> one_each = run(p);
  check(p);
  const char* set = std::getenv("T2T_ORDER");
  const std::string before = set == nullptr ? "forward" : set;
  for (const std::string& order : orders)
    for (const int at_once : {1, 2, 3, 5}) {
      CAPTURE(order);
      CAPTURE(at_once);
      setenv("T2T_ORDER", order.c_str(), 1);
      const std::vector<std::vector<float>> several = run(p, at_once);
      setenv("T2T_ORDER", before.c_str(), 1);
      CHECK(several == one_each);
    }
}

TEST_CASE("launches may use the same scratch one after another, whatever their sizes") {
  const PagesProblem small = in_pages(made_texts({300, 20}, {2, 1, 64}), {2, 1, 64}, 16);
  const PagesProblem large = in_pages(made_texts({600, 300, 700}, {8, 2, 64}), {8, 2, 64}, 16);
  const auto of_small = run(small), of_large = run(large);
  DecodeScratch scratch(scratch_of(large));
  for (const int at_once : {1, 2, 1, 3}) {
    CAPTURE(at_once);
    CHECK(run_in(scratch, large, at_once) == of_large);
    CHECK(run_in(scratch, small, at_once) == of_small);
    for (const unsigned arrived : scratch.arrived.download()) CHECK(arrived == 0);
  }
}

TEST_CASE("stretches begin at multiples of 256: a new key of weight 0 changes no bit") {
  const Heads n{2, 1, 64};
  PagedText sequence = made_text(1, 321, n), shorter = made_text(1, 320, n);
  REQUIRE(std::ranges::equal(row(sequence.k, 319), row(shorter.k, 319)));
  for (float& number : sequence.q) number = std::abs(number) + 1;
  shorter.q = sequence.q;
  for (float& number : row(sequence.k, 320))
    number = -0x1p13f;  // its score is far below all others
  CHECK(run(in_pages({sequence}, n, 16)) == run(in_pages({shorter}, n, 16)));
}

TEST_CASE("rung 5 of chapter 11 gives the same bits, if its stretches have 256 keys, too") {
  for (const int S : {256, 512}) {
    const Heads n{6, 2, 64};
    const PagedText sequence = made_text(7, S, n);
    const auto on_device = [](const Tensor<2>& x) {
      return as_bf16(std::vector<float>(x.begin(), x.end()));
    };
    const DeviceBuffer<bf16> q = on_device(sequence.q), k = on_device(sequence.k),
                             v = on_device(sequence.v);
    DeviceBuffer<bf16> out(n.of(6));
    const Strides queries = row_major(1, 6, 64), keys = row_major(S, 2, 64);
    const AttentionCall<bf16> call{q.data(), k.data(), v.data(), out.data(), queries, keys,
                                   keys,     queries,  1,        1,          S,       6,
                                   2,        64,       false,    0};
    DecodeScratch scratch(decode_scratch(call, S / 256));
    attend_decode(call, S / 256, scratch);
    std::vector<float> want;
    for (const bf16 number : out.download()) want.push_back(__bfloat162float(number));
    CHECK(run(in_pages({sequence}, n, 16))[0] == want);
  }
}

TEST_CASE("a NaN stays with its text, and within it in its channel") {
  const Heads n{4, 2, 64};
  const PagesProblem p = in_pages(made_texts({30, 300, 20}, n), n, 16);
  const std::vector<std::vector<float>> before = run(p);
  PagesProblem broken = p;
  broken.sequences[1].v(290, 64 + 5) = std::nanf("");  // of the second group
  broken.place(broken.sequences[1], broken.tables[1]);
  const std::vector<std::vector<float>> after = run(broken);
  for (size_t b = 0; b < 3; ++b)
    for (size_t i = 0; i < before[b].size(); ++i) {
      CAPTURE(b);
      CAPTURE(i);
      const bool reached = b == 1 && i >= 2 * 64 && i % 64 == 5;
      CHECK((reached ? std::isnan(after[b][i]) : after[b][i] == before[b][i]));
    }
}

TEST_CASE("the kernel fits the shared memory of each GPU") {
  for (const char* card : {"sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120"}) {
    CAPTURE(card);
    setenv("T2T_CARD", card, 1);
    for (const int D : {64, 128}) {
      const Heads n{1, 1, D};
      check(in_pages(made_texts({3}, n), n, 2));
    }
    unsetenv("T2T_CARD");
  }
}

TEST_CASE("tables that the kernel cannot read are refused") {
  const auto plan = [](const std::vector<Table>& tables, const std::vector<int>& lengths,
                       int pages = 6, int page_size = 4, int at_once = 1) {
    return plan_sequences(tables, lengths, pages, page_size, at_once);
  };
  REFUSES(plan({}, {}), "sequences: wanted at least 1, got 0");
  REFUSES(plan({{0}, {1}}, {1}), "lengths: wanted 2, got 1");
  REFUSES(plan({{0}}, {1}, 0), "pages: wanted at least 1, got 0");
  REFUSES(plan({{0}}, {1}, 6, 0), "positions of a page: wanted at least 1, got 0");
  REFUSES(plan({{0}}, {1}, 6, 4, 0), "stretches of a block: wanted at least 1, got 0");
  REFUSES(plan({{0}, {1}}, {1, 0}), "sequence 1: wanted 1 to 2147483391 positions, got 0");
  REFUSES(plan({{0}}, {2147483392}, 1, 2147483647),
          "sequence 0: wanted 1 to 2147483391 positions, got 2147483392");
  REFUSES(plan({{0}}, {5}),
          "sequence 0: wanted pages for 5 positions, got 1 page(s) of 4 positions each");
  REFUSES(plan({{0}, {}}, {1, 1}),
          "sequence 1: wanted pages for 1 positions, got 0 page(s) of 4 positions each");
  REFUSES(plan({{0, 6}}, {5}), "sequence 0: wanted pages below 6, got 6");
  CHECK_NOTHROW(plan({{0, 5}}, {8}));
}

TEST_CASE("a call that the kernel cannot take is refused") {
  const std::vector<Table> tables = {{0}};
  const PagedSequences sequences(plan_sequences(tables, std::vector<int>{1}, 1, 1));
  DeviceBuffer<float> memory(64);
  DecodeScratch room({65, 1}), few_floats({64, 1}), no_counter({65, 0});
  auto* x = reinterpret_cast<bf16*>(memory.data());
  const auto call = [&](int H, int G, int D) {
    attend_pages({x, x, x, x, H, G, D}, sequences, room);
  };
  REFUSES(call(1, 0, 64), "G: wanted at least 1, got 0");
  REFUSES(call(3, 2, 64), "H: wanted a multiple of G, got 3");
  REFUSES(call(0, 2, 64), "H: wanted a multiple of G, got 0");
  REFUSES(call(65536, 1, 64), "H: wanted at most 65535, got 65536");
  REFUSES(call(1, 1, 96), "D: wanted 64 or 128, got 96");
  const auto with = [&](const bf16* q, const bf16* k, const bf16* v, bf16* out,
                        DecodeScratch& scratch) {
    attend_pages({q, k, v, out, 1, 1, 64}, sequences, scratch);
  };
  REFUSES(with(nullptr, x, x, x, room), "q: wanted device memory, got 0");
  REFUSES(with(x, x + 1, x, x, room),
          "keys: wanted rows that begin at multiples of 16 bytes, got 2");
  REFUSES(with(x, x, nullptr, x, room), "values: wanted device memory, got 0");
  REFUSES(with(x, x, x, x + 4, room),
          "out: wanted rows that begin at multiples of 16 bytes, got 8");
  REFUSES(with(x, x, x, x, few_floats), "floats of scratch: wanted at least 65, got 64");
  REFUSES(with(x, x, x, x, no_counter), "counters of scratch: wanted at least 1, got 0");
}
