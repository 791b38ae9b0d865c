// What must be true of the engine's runner on a device; run on the stand-in, and on a GPU where one
// is.
#include "15_serving/on_gpu/gpu_runner.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "15_serving/gpu_model.hpp"
#include "15_serving/on_gpu/device_pages.hpp"
#include "support/all_close.hpp"
#include "support/refuses.hpp"

namespace t2t::gpu_runner_test {

using namespace device_models;
using std::size_t;
using Table = std::vector<size_t>;
using Logits = Tensor<2>;

static constexpr EngineOptions some_pages{
    .pages = 24, .page_size = 16, .sequences = 4, .budget = 64};

/// `count` more tokens of a sequence, the last `wanted` of which want logits.
struct Part {
  size_t sequence, count, wanted = 1;
};

/// Texts that a runner reads step by step, as an engine would have it.
class Reader {
 public:
  Reader(ModelRunner runner, std::vector<Table> tables)
      : runner_(std::move(runner)), tables_(std::move(tables)), lengths_(tables_.size()) {
    for (size_t i = 0; i < tables_.size(); ++i) texts_.push_back(some_ids(100, int(3 * i)));
  }

  Logits read(const std::vector<Part>& parts) {
    std::vector<Chunk> chunks;
    size_t rows = 0;
    for (const auto& [i, count, wanted] : parts) {
      const auto ids = std::span<const int>(texts_[i]).subspan(lengths_[i], count);
      const size_t used = runner_.options.pages_for(lengths_[i] + count);
      chunks.push_back({i, lengths_[i], ids, std::span(tables_[i]).first(used), wanted});
      lengths_[i] += count, rows += wanted;
    }
    Logits logits = empty(rows, runner_.V);
    runner_.run(chunks, logits);
    return logits;
  }
  /// The sequences forget all but their first tokens.
  void rewind(const std::vector<size_t>& lengths) { lengths_ = lengths; }
  void set_table(size_t i, Table table) { tables_[i] = std::move(table); }
  const ModelRunner& runner() const { return runner_; }

 private:
  ModelRunner runner_;
  std::vector<Table> tables_;
  std::vector<Ids> texts_;
  std::vector<size_t> lengths_;
};

/// Tables in which no page has its neighbour beside it.
static std::vector<Table> scattered() {
  return {{7, 2, 20, 11}, {0, 19, 4, 9}, {23, 1, 13, 6}, {16, 3, 22, 10}};
}
static Reader on_gpu() { return {gpu_runner(tiny(), some_pages), scattered()}; }
static Reader on_cpu() { return {model_runner(tiny(), some_pages), scattered()}; }

/// Prompts and answers mixed, in orders in which answers are no neighbours.
static const std::vector<std::vector<Part>> mixed_steps = {
    {{2, 20}, {0, 17, 3}, {3, 1}},
    {{3, 1}, {2, 9, 0}, {0, 1}, {1, 30, 2}},
    {{1, 1}, {0, 1}, {3, 1}, {2, 1}},
    {{1, 1}, {3, 6, 6}, {2, 1}},
};

TEST_CASE("a step of prompts and answers, in any order: the logits of the CPU's runner") {
  Reader gpu = on_gpu(), cpu = on_cpu();
  for (size_t i = 0; i < mixed_steps.size(); ++i) {
    CAPTURE(i);
    const Logits want = cpu.read(mixed_steps[i]), got = gpu.read(mixed_steps[i]);
    CHECK(all_close(got, want, bound(tiny(), want)));
  }
}

TEST_CASE("steps that are repeated from a recording: the logits of the CPU's runner") {
  Reader gpu = on_gpu(), cpu = on_cpu();
  const std::vector<Part> prompts = {{0, 13}, {1, 31}, {2, 4}};
  gpu.read(prompts), cpu.read(prompts);
  const auto check = [&](const std::vector<Part>& step) {
    const Logits want = cpu.read(step), got = gpu.read(step);
    CHECK(all_close(got, want, bound(tiny(), want)));
  };
  // Positions cross the ends of pages; the order of sequences and who wants logits may change.
  for (int i = 0; i < 4; ++i) check({{0, 1}, {1, 1}, {2, 1}});
  check({{2, 1}, {0, 1}, {1, 1}});
  check({{2, 1}, {0, 1, 0}, {1, 1}});
  check({{2, 1, 0}, {0, 1}, {1, 1}});
  check({{2, 1}, {1, 1}});
  for (int i = 0; i < 3; ++i) check({{2, 1}, {0, 1}, {1, 1}});
}

TEST_CASE("a chunk's launches are made, then recorded, then repeated, until its shape changes") {
  DevicePages pages(tiny().config(), some_pages, 300);
  const DeviceCache cache = pages.cache();
  Table all(19);
  for (size_t i = 0; i < all.size(); ++i) all[i] = i;
  pages.tables = {all, all, all, all};
  const Ids two = {1, 2};
  int launched = 0;
  const auto run = [&](std::vector<size_t> lengths, size_t rows) {
    lengths.resize(4);
    const auto ids = std::span(two).first(rows);
    const std::vector<MoreTokens> more = {{0, ids}, {2, ids}};
    cache.run(plan_rows(more, lengths, 64)[0], [&] { ++launched; });
    return launched;
  };
  CHECK(run({5, 0, 9}, 1) == 1);
  CHECK(run({6, 0, 10}, 1) == 2);  // recorded
  CHECK(run({7, 0, 255}, 1) == 2);
  CHECK(run({8, 0, 256}, 1) == 3);  // the second sequence has two stretches now
  CHECK(run({9, 0, 257}, 1) == 4);
  CHECK(run({9, 0, 257}, 2) == 5);  // prompts have launches of their own
  CHECK(run({9, 0, 257}, 2) == 6);
  CHECK(run({9, 0, 257}, 2) == 7);
  CHECK(run({9, 0, 257}, 1) == 8);
}

TEST_CASE("a chunk that divides as many stretches among other blocks is not repeated") {
  DevicePages pages(tiny().config(), some_pages, 700);
  pages.tables.assign(4, Table(44, 0));
  const Ids one = {1};
  int launched = 0;
  const auto run = [&](size_t first, size_t second) {
    const std::vector<MoreTokens> more = {{0, std::span(one)}, {1, std::span(one)}};
    pages.cache().run(plan_rows(more, std::vector<size_t>{first, second, 0, 0}, 64)[0],
                      [&] { ++launched; });
    return launched;
  };
  CHECK(run(299, 299) == 1);  // two stretches each, and a block for both of them
  CHECK(run(300, 300) == 2);  // recorded
  CHECK(run(301, 301) == 2);
  CHECK(run(100, 600) == 3);  // one stretch and three, and a block for each
}

TEST_CASE("a step copies the places of its rows, its lists, and the tables of its sequences") {
  // 64 rows, 4 sequences of up to 300 positions in 2 stretches each, each of which may have a
  // block, and at most 4 tiles of queries.
  constexpr size_t of_lists = 64 + 4 + 4 + 5 + 3 * 4 * 2 + 4 + 4 * 4;
  DevicePages pages(tiny().config(), some_pages, 300);
  pages.tables = {{0, 1, 2}, {3}, {4, 5, 6, 7}, {}};
  const Ids two = {1, 2};
  const std::vector<MoreTokens> more = {{0, std::span(two).first(1)}, {2, two}};
  pages.cache().run(plan_rows(more, std::vector<size_t>{20, 0, 40, 0}, 64)[0], [] {});
  CHECK(pages.bytes_of_lists() == 4 * (of_lists + 2 + 3));  // 21 positions, and 42
  CHECK(pages.bytes_of_a_page() == 2 * 2 * 2 * 16 * 64 * 2);
}

TEST_CASE("a list that has no room for its elements is refused") {
  FixedLists lists(std::vector<size_t>{2, 3});
  REFUSES(lists.set(0, std::vector<int>{1, 2, 3}), "elements of a list: wanted at most 2, got 3");
  lists.set(1, std::vector<int>{7, 8});
  CHECK(lists.bytes() == 4 * (2 + 2));
}

/// The logits of all steps.
static std::vector<Logits> read_all(Reader reader) {
  std::vector<Logits> all;
  for (const std::vector<Part>& step : mixed_steps) all.push_back(reader.read(step));
  return all;
}

TEST_CASE("the same bits for any pages, and for another order of threads") {
  const std::vector<Logits> want = read_all(on_gpu());
  Reader in_order = on_gpu();
  for (size_t i = 0; i < 4; ++i) in_order.set_table(i, {4 * i, 4 * i + 1, 4 * i + 2, 4 * i + 3});
  CHECK(read_all(std::move(in_order)) == want);
  const char* set = std::getenv("T2T_ORDER");
  const std::string before = set == nullptr ? "forward" : set;
  setenv("T2T_ORDER", before == "reverse" ? "3" : "reverse", 1);
  const std::vector<Logits> other = read_all(on_gpu());
  setenv("T2T_ORDER", before.c_str(), 1);
  CHECK(other == want);
}

TEST_CASE("a page is shared, or copied and put elsewhere: the same bits") {
  Reader reader = on_gpu();
  reader.read({{0, 40}});
  const Logits want = reader.read({{0, 2}});
  const ModelRunner& runner = reader.runner();
  reader.rewind({40, 0, 0, 0});
  for (const auto& [from, to] : std::vector<std::pair<size_t, size_t>>{{2, 8}, {20, 5}})
    runner.put(to, runner.copy_of(from));
  reader.set_table(0, {7, 8, 5});
  CHECK(reader.read({{0, 2}}) == want);
  // What is written to the copy does not reach the page.
  reader.rewind({40, 0, 0, 0});
  reader.set_table(0, {7, 2, 20});
  CHECK(reader.read({{0, 2}}) == want);
  CHECK(runner.copy_of(2) == runner.copy_of(8));
  // Keys and values of 2 layers and 2 groups, 16 rows of 64 bf16.
  CHECK(runner.copy_of(2).size() == 2 * 2 * 2 * 16 * 64 * 2);
}

TEST_CASE("a prompt whose logits are wanted of more rows than the device returns at once" *
          doctest::test_suite("slow")) {
  EngineOptions options = some_pages;
  options.budget = 140, options.sequences = 1;
  const Table table = {3, 1, 2, 0, 5, 4, 7, 6, 8};
  Reader gpu(gpu_runner(tiny(), options), {table}), cpu(model_runner(tiny(), options), {table});
  const Ids long_text = some_ids(140);
  const auto read = [&](const Reader& reader) {
    Logits logits = empty(133, reader.runner().V);
    reader.runner().run(std::vector<Chunk>{{0, 0, long_text, table, 133}}, logits);
    return logits;
  };
  const Logits want = read(cpu);
  CHECK(all_close(read(gpu), want, bound(tiny(), want)));
}

TEST_CASE("logits go into rows that are no neighbours, and nothing is written between them") {
  Reader reader = on_gpu();
  const Logits want = reader.read({{0, 5, 3}});
  const size_t V = want.shape(1);
  Logits wide = empty(3, V + 2);
  std::ranges::fill(wide, 7);
  const Ids text = some_ids(5, 0);
  const Matrix rows(wide.data(), 3, V, V + 2);
  reader.runner().run(std::vector<Chunk>{{0, 0, text, scattered()[0], 3}}, rows);
  CHECK(copy_of(rows) == want);
  CHECK(std::ranges::count(wide, 7.0f) == 6);
}

TEST_CASE("what a device's runner cannot do is refused") {
  const auto make = [](const EngineOptions& options) { gpu_runner(tiny(), options); };
  EngineOptions options = some_pages;
  options.bits = 8;
  REFUSES(make(options), "bits of a key or value: wanted 32, for bf16 on a GPU, got 8");
  options = some_pages, options.budget = 70000, options.sequences = 70000;
  REFUSES(make(options), "chunk: wanted 1 to 65535, got 70000");
  options = some_pages, options.pages = size_t(1) << 40;
  REFUSES(make(options), "pages: wanted 1 to 134217727, got 1099511627776");
  options = some_pages, options.sequences = 0;
  REFUSES(make(options), "sequences: wanted at least 1, got 0");

  Reader reader = on_gpu();
  REFUSES(reader.runner().copy_of(24), "page: wanted below 24, got 24");
  REFUSES(reader.runner().put(24, reader.runner().copy_of(0)), "page: wanted below 24, got 24");
  REFUSES(reader.runner().put(0, std::vector<std::byte>(5)),
          "bytes of a page: wanted 16384, got 5");
  reader.set_table(0, {24, 1});
  REFUSES(reader.read({{0, 2}}), "sequence 0: wanted pages below 24, got 24");
}

}  // namespace t2t::gpu_runner_test
