// What must be true of prompts over pages on a GPU; run on the stand-in, and on a GPU where one is.
#include "15_serving/kernels/prompts.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "15_serving/gpu_problem.hpp"
#include "support/refuses.hpp"

namespace t2t::prompts_test {

using std::size_t;
using Numbers = std::vector<float>;
using Table = std::vector<size_t>;

#if defined(__SANITIZE_THREAD__)  // the race detector is slow: a few tiles show what many do
static const std::vector<int> page_sizes = {16, 7}, widths = {64}, groups = {3};
static constexpr int long_prompt = 40;
#else
static const std::vector<int> page_sizes = {1, 7, 16, 48}, widths = {64, 128}, groups = {1, 3};
static constexpr int long_prompt = 150;  // two tiles of queries
#endif

/// The last `rows` tokens of a sequence of S are new.
struct Prompt {
  int S, rows;
};

/// Sequences in pages, and the queries of their new tokens.
struct PromptsProblem {
  PagesProblem pages;
  std::vector<Prompt> prompts;
  std::vector<Tensor<2>> q;  // [rows, H·D] of each

  int position(size_t b) const { return prompts[b].S - prompts[b].rows; }
};

static PromptsProblem made(const std::vector<Prompt>& prompts, const Heads& n, int page_size,
                           float scale = 4) {
  std::vector<PagedText> texts;
  for (const Prompt& p : prompts) texts.push_back(made_text(std::uint32_t(texts.size()), p.S, n));
  PromptsProblem problem{in_pages(texts, n, page_size), prompts, {}};
  for (size_t b = 0; b < prompts.size(); ++b)
    problem.q.push_back(
        rounded(numbers(std::uint32_t(50 + b), scale, 0, size_t(prompts[b].rows), n.of(n.H))));
  return problem;
}

/// What the kernel writes: [rows·H·D] of each prompt. A row that belongs to none lies before each
/// of them, and must stay NaN.
static std::vector<Numbers> run(const PromptsProblem& p) {
  const PagesProblem& of = p.pages;
  const size_t width = of.n.of(of.n.H);
  Numbers queries;
  std::vector<PromptRows> rows;
  for (size_t b = 0; b < p.prompts.size(); ++b) {
    queries.insert(queries.end(), width, std::nanf(""));
    rows.push_back({int(queries.size() / width), p.prompts[b].rows, p.position(b)});
    queries.insert(queries.end(), p.q[b].begin(), p.q[b].end());
  }
  const PagedPrompts prompts(plan_prompts(of.tables, rows, int(of.pages), int(of.page_size)));
  const DeviceBuffer<bf16> q = as_bf16(queries), keys = as_bf16(of.keys),
                           values = as_bf16(of.values);
  DeviceBuffer<bf16> out(queries.size());
  attend_prompts({q.data(), keys.data(), values.data(), out.data(), of.n.H, of.n.G, of.n.D},
                 prompts);
  const Numbers all = floats_of(out.download());
  std::vector<Numbers> result;
  for (const PromptRows& one : rows) {
    const auto begin = all.begin() + long(size_t(one.row) * width);
    result.emplace_back(begin, begin + long(size_t(one.rows) * width));
    CHECK(std::all_of(begin - long(width), begin, [](float x) { return std::isnan(x); }));
  }
  return result;
}

static Tensor<2> first_rows(const Tensor<2>& x, size_t count) {
  return copy_of(ConstMatrix(x).rows_from(0, count));
}

/// The largest error of a prompt's rows, as a share of its bound.
static double worst_row(const PromptsProblem& p, size_t b, const Numbers& got,
                        const Tensor<2>& want) {
  const Heads& n = p.pages.n;
  const size_t width = n.of(n.H);
  double most = 0;
  for (size_t t = 0; t < p.q[b].shape(0); ++t) {
    const size_t seen = size_t(p.position(b)) + t + 1;
    const PagedText& text = p.pages.sequences[b];
    const PagedText row_of{copy_of(ConstMatrix(p.q[b]).rows_from(t, 1)), first_rows(text.k, seen),
                           first_rows(text.v, seen)};
    const Numbers got_row(got.begin() + long(t * width), got.begin() + long((t + 1) * width));
    most = std::max(most, worst(got_row, row(want, t), bounds(row_of, n, row(want, t))));
  }
  return most;
}

/// Every row, against the formula and against the kernel for the CPU.
static void check(const PromptsProblem& p) {
  const PagesProblem& of = p.pages;
  CAPTURE(of.page_size);
  CAPTURE(of.n.D);
  CAPTURE(of.n.H);
  const std::vector<Numbers> got = run(p);
  PagedScratch scratch;
  for (size_t b = 0; b < p.prompts.size(); ++b) {
    CAPTURE(b);
    CAPTURE(p.prompts[b].S);
    CAPTURE(p.prompts[b].rows);
    const PagedRun of_rows{0, p.q[b].shape(0), size_t(p.position(b)), of.tables[b]};
    const Tensor<2> want = paged_attention(p.q[b], of_rows, of.layer(), Mask::causal);
    Tensor<2> on_cpu = want;
    paged_attention_rows(p.q[b], {&of_rows, 1}, of.layer(), Mask::causal, on_cpu, scratch);
    CHECK(worst_row(p, b, got[b], want) <= 1);
    CHECK(worst_row(p, b, got[b], on_cpu) <= 1);
  }
}

TEST_CASE("prompts by hand: each row sees the positions up to its own, in pages of two") {
  // One head. A key of 0 has the same weight as any other, and one of −2^13 has none.
  PromptsProblem p = made({{4, 3}}, {1, 1, 64}, 2);
  const float keys[] = {0, 0, -0x1p13f, 0}, values[] = {6, 12, 100, 30};
  for (size_t s = 0; s < 4; ++s) {
    std::ranges::fill(row(p.pages.sequences[0].k, s), keys[s]);
    std::ranges::fill(row(p.pages.sequences[0].v, s), values[s]);
  }
  p.pages.place(p.pages.sequences[0], p.pages.tables[0]);
  for (float& number : p.q[0]) number = 1;
  const Numbers got = run(p)[0];
  CHECK(got[0] == 9);        // the mean of 6 and 12
  CHECK(got[64] == 9);       // its own key has no weight
  CHECK(got[2 * 64] == 16);  // the mean of 6, 12 and 30
  CHECK(std::count(got.begin(), got.end(), 9.0f) == 2 * 64);
}

TEST_CASE("prompts by hand: how they are cut into tiles, those with the most keys first") {
  const std::vector<Table> tables = {{4, 0, 3, 5}, {1, 2}};
  const std::vector<PromptRows> rows = {{1, 270, 30}, {300, 2, 127}};
  const PromptPlan plan = plan_prompts(tables, rows, 7, 100);
  CHECK(plan.tables == std::vector<int>{4, 0, 3, 1, 2});  // 300 positions need 3 pages
  REQUIRE(plan.tiles.size() == 4);
  const std::vector<std::vector<int>> want = {
      {257, 14, 286, 0}, {129, 128, 158, 0}, {1, 128, 30, 0}, {300, 2, 127, 3}};
  for (size_t i = 0; i < 4; ++i) {
    const PromptTile& tile = plan.tiles[i];
    CHECK(std::vector<int>{tile.row, tile.rows, tile.position, tile.table_at} == want[i]);
  }
}

TEST_CASE("prompts are the formula: several at once, of any length, from any position on") {
  for (const int D : widths)
    for (const int page_size : page_sizes)
      check(made({{1, 1}, {17, 17}, {40, 1}, {23, 17}, {70, 6}}, {2, 1, D}, page_size));
}

TEST_CASE("prompts are the formula: more queries than a tile has, and keys of several steps") {
  for (const int D : widths) {
    const Heads n{2, 2, D};
    check(made({{100, 100}, {long_prompt + 70, long_prompt}, {200, 33}}, n, 16));
  }
}

TEST_CASE("prompts are the formula: groups of every size") {
  for (const int N : groups) check(made({{20, 9}, {70, 5}}, {2 * N, 2, 64}, 7));
}

TEST_CASE("prompts with high scores do not overflow") {
  check(made({{90, 40}, {33, 33}}, {2, 1, 64}, 16, 400));
}

TEST_CASE("a prompt has the same bits alone, in chunks, in any pages and any order of threads") {
  const Heads n{2, 1, 64};
  const PromptsProblem p = made({{long_prompt, long_prompt}, {3, 3}, {90, 40}}, n, 16);
  const std::vector<Numbers> together = run(p);
  for (size_t b = 0; b < p.prompts.size(); ++b) {
    CAPTURE(b);
    for (const int page_size : {page_sizes[0], 48}) {
      PromptsProblem alone{
          in_pages({p.pages.sequences[b]}, n, page_size), {p.prompts[b]}, {p.q[b]}};
      CHECK(run(alone)[0] == together[b]);
    }
  }

  // The last prompt's first 13 rows, and then the others.
  for (const int first : {0, 13}) {
    PromptsProblem chunk = p;
    const int rows = first == 0 ? 13 : 27;
    chunk.prompts[2] = {50 + first + rows, rows};
    chunk.q[2] = copy_of(ConstMatrix(p.q[2]).rows_from(size_t(first), size_t(rows)));
    const auto begin = together[2].begin() + long(n.of(n.H)) * first;
    CHECK(run(chunk)[2] == Numbers(begin, begin + long(n.of(n.H)) * rows));
  }

  const char* set = std::getenv("T2T_ORDER");
  const std::string before = set == nullptr ? "forward" : set;
  for (const char* order : {"reverse", "1", "2"}) {
    CAPTURE(order);
    setenv("T2T_ORDER", order, 1);
    const std::vector<Numbers> other = run(p);
    setenv("T2T_ORDER", before.c_str(), 1);
    CHECK(other == together);
  }
}

TEST_CASE("a NaN in one prompt's pages reaches no other prompt, and no earlier chunk") {
  const Heads n{2, 1, 64};
  const PromptsProblem p = made({{30, 30}, {40, 20}}, n, 16);
  const std::vector<Numbers> before = run(p);
  PromptsProblem broken = p;
  broken.prompts[1] = {32, 12};  // positions 32 to 39 are not reached yet
  broken.q[1] = first_rows(p.q[1], 12);
  for (size_t s = 32; s < 40; ++s)
    for (float& number : row(broken.pages.sequences[1].v, s)) number = std::nanf("");
  broken.pages.place(broken.pages.sequences[1], broken.pages.tables[1]);
  const std::vector<Numbers> after = run(broken);
  CHECK(after[0] == before[0]);
  CHECK(after[1] == Numbers(before[1].begin(), before[1].begin() + 12L * 2 * 64));
}

TEST_CASE("the prompts' kernel fits the shared memory of each GPU") {
  for (const char* card : {"sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120"}) {
    CAPTURE(card);
    setenv("T2T_CARD", card, 1);
    for (const int D : {64, 128}) check(made({{3, 2}}, {1, 1, D}, 2));
    unsetenv("T2T_CARD");
  }
}

TEST_CASE("prompts that the kernel cannot take are refused") {
  const auto plan = [](const std::vector<Table>& tables, const std::vector<PromptRows>& rows) {
    return plan_prompts(tables, rows, 6, 4);
  };
  REFUSES(plan({}, {}), "sequences: wanted at least 1, got 0");
  REFUSES(plan({{0}, {1}}, {{0, 1, 0}}), "prompts: wanted 2, got 1");
  REFUSES(plan({{0}}, {{0, 0, 0}}), "rows: wanted at least 1, got 0");
  REFUSES(plan({{0}}, {{-1, 1, 0}}), "row: wanted at least 0, got -1");
  REFUSES(plan({{0}}, {{0, 1, -1}}), "position: wanted at least 0, got -1");
  REFUSES(plan({{0}}, {{0, 3, 2}}),
          "sequence 0: wanted pages for 5 positions, got 1 page(s) of 4 positions each");
  REFUSES(plan({{0, 6}}, {{0, 3, 2}}), "sequence 0: wanted pages below 6, got 6");
  REFUSES(plan({{0}}, {{0, 2147483647, 2147483647}}),
          "sequence 0: wanted 1 to 2147483391 positions, got 4294967294");
  CHECK_NOTHROW(plan({{0, 5}}, {{0, 3, 5}}));

  const PagedPrompts prompts(plan({{0}}, {{0, 1, 0}}));
  DeviceBuffer<bf16> x(64);
  const auto with = [&](const bf16* q, bf16* out, int H, int D) {
    attend_prompts({q, x.data(), x.data(), out, H, 1, D}, prompts);
  };
  REFUSES(with(x.data(), x.data(), 1, 96), "D: wanted 64 or 128, got 96");
  REFUSES(with(x.data(), x.data(), 0, 64), "H: wanted a multiple of G, got 0");
  REFUSES(with(nullptr, x.data(), 1, 64), "q: wanted device memory, got 0");
  REFUSES(with(x.data(), x.data() + 4, 1, 64),
          "out: wanted rows that begin at multiples of 16 bytes, got 8");
}

}  // namespace t2t::prompts_test
