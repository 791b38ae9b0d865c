// Pages compared with contiguous memory: attention, and a small model that serves several
// sequences. Batch-invariant products compared with BLAS. Drafts compared with tokens one by one.
#include "timing/bench.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "06_gqa/fast/grouped_rows.hpp"
#include "09_language_model/fast/forward.hpp"
#include "12_quantization/packed/packed_weight.hpp"
#include "15_serving/attention/paged_rows.hpp"
#include "15_serving/engine/engine.hpp"
#include "15_serving/products/batch_invariant.hpp"
#include "15_serving/products/matrices_as.hpp"
#include "linalg.hpp"
#include "random.hpp"

namespace t2t {

static constexpr std::size_t H = 9, G = 3, D = 64, page_size = 16;

/// One sequence's keys and values, side by side and in pages in another order.
struct BenchSequence {
  Tensor<2> k, v;          // [S, G·D]
  Tensor<1> keys, values;  // [G, pages, page_size, D]
  std::vector<std::size_t> table;

  BenchSequence(std::size_t S, Random& random)
      : k(random.normal<2>({S, G * D})), v(random.normal<2>({S, G * D})) {
    const std::size_t pages = S / page_size;
    keys = empty(S * G * D), values = empty(S * G * D);
    for (std::size_t i = 0; i < pages; ++i) table.push_back((i * 7 + 3) % pages);
    for (std::size_t s = 0; s < S; ++s)
      for (std::size_t g = 0; g < G; ++g) {
        const std::size_t at = ((g * pages + table[s / page_size]) * page_size + s % page_size) * D;
        std::copy_n(&k(s, g * D), D, &keys(at));
        std::copy_n(&v(s, g * D), D, &values(at));
      }
  }
  PagedLayer layer() const { return {keys.data(), values.data(), table.size(), page_size, G, D}; }
};

/// The last T of S positions.
static void bench_attention(Bench& bench, std::size_t T, std::size_t S) {
  Random random(1);
  const BenchSequence sequence(S, random);
  const Tensor<2> q = random.normal<2>({T, H * D});
  Tensor<2> out = empty(T, H * D), want = out;
  PagedScratch paged;
  GroupedScratch grouped(T, S, H, D);
  const PagedRun run{0, T, S - T, sequence.table};
  const auto in_pages = [&] {
    paged_attention_rows(q, {&run, 1}, sequence.layer(), Mask::causal, out, paged);
  };
  const auto contiguous = [&] {
    grouped_attention_rows(q, side_by_side(sequence.k, sequence.v, G), Mask::causal, want, grouped);
  };
  const std::string what =
      fmt::format("paged_attention_rows, T={} S={} H={} G={} D={}", T, S, H, G, D);
  in_pages(), contiguous();
  bench.expect_right(what, std::equal(want.begin(), want.end(), out.begin(),
                                      [](float a, float b) { return std::abs(a - b) < 1e-4f; }));
  bench.against(what, in_pages, "grouped_attention_rows, contiguous", contiguous);
}

static void bench_batch_invariant(Bench& bench, std::size_t T) {
  Random random(2);
  const Tensor<2> x = random.normal<2>({T, 576}), w = random.normal<2>({1536, 576}, 0.04f);
  const Weight invariant = batch_invariant(w), floats{Tensor<2>(w)};
  Tensor<2> y = empty(T, 1536), want = y;
  matmul_bt(x, invariant, y), matmul_bt(x, floats, want);
  const std::string what = fmt::format("batch_invariant, T={} 1536×576", T);
  bench.expect_right(what, std::equal(want.begin(), want.end(), y.begin(),
                                      [](float a, float b) { return std::abs(a - b) < 1e-3f; }));
  bench.against(
      what, [&] { matmul_bt(x, invariant, y); }, "matmul_bt of floats",
      [&] { matmul_bt(x, floats, want); });
}

/// A model of a few layers of SmolLM2's width, in Q8_0.
static Model bench_model() {
  const Config config{.block = llama_style(576, 9, 3, 1536), .L = 4, .V = 4096, .T_max = 2048};
  const auto packed = [](const Tensor<2>& x) { return packed_floats(TensorType::q8_0, x); };
  Random random(3);
  return Model(config, matrices_as(packed, draw_model(config, random), config));
}

/// One sequence in the pages of a model.
struct ReadSequence {
  ModelRunner runner;
  std::vector<std::size_t> table;
  std::vector<int> ids = std::vector<int>(512, 7);
  Tensor<2> logits;

  explicit ReadSequence(const Model& model, std::size_t bits = 32)
      : runner(model_runner(
            model,
            {.pages = 64, .page_size = page_size, .sequences = 1, .budget = 512, .bits = bits})),
        logits(empty(1, runner.V)) {
    for (std::size_t i = 0; i < runner.options.pages; ++i) table.push_back(i);
  }
  void read(std::size_t position, std::size_t count) {
    const Chunk chunk{0, position, std::span(ids).first(count), table, 1};
    runner.run({&chunk, 1}, logits);
  }
};

static std::string tokens_after(std::size_t T, std::size_t before) {
  return fmt::format("{} after {}, 4 layers of C=576 in Q8_0",
                     T == 1 ? "a token" : fmt::format("{} tokens", T), before);
}

/// The whole model: T tokens after `before` others, with pages and with chapter 08's caches.
static void bench_model_with_pages(Bench& bench, const Model& model, std::size_t before,
                                   std::size_t T) {
  ReadSequence sequence(model);
  ModelState state(model.config(), 1024, {.chunk = 512});
  const std::span<const int> ids(sequence.ids);
  Tensor<2> logits = empty(1, model.config().V);
  if (before > 0)
    sequence.read(0, before), forward(model, state, ids.first(before), row(logits, 0));
  bench.against(
      "pages: " + tokens_after(T, before), [&] { sequence.read(before, T); }, "contiguous caches",
      [&] {
        truncate(state, before);
        forward(model, state, ids.first(T), row(logits, 0));
      });
}

/// The same for pages of few bits, compared with pages of floats.
static void bench_quantized_pages(Bench& bench, const Model& model, std::size_t bits,
                                  std::size_t before, std::size_t T) {
  ReadSequence quantized(model, bits), floats(model);
  if (before > 0) quantized.read(0, before), floats.read(0, before);
  bench.against(
      fmt::format("pages quantized to {} bits: {}", bits, tokens_after(T, before)),
      [&] { quantized.read(before, T); }, "pages of floats", [&] { floats.read(before, T); });
}

/// What a preempted sequence of 512 tokens costs when its pages are copied to other memory and
/// back, or when its tokens are read again.
static void bench_preempted_sequence(Bench& bench, const Model& model) {
  ReadSequence sequence(model);
  sequence.read(0, 512);
  std::vector<PageCopy> copies(512 / page_size);
  bench.against(
      "512 tokens copied out and back, 4 layers of C=576",
      [&] {
        for (std::size_t i = 0; i < copies.size(); ++i) copies[i] = sequence.runner.copy_of(i);
        for (std::size_t i = 0; i < copies.size(); ++i) sequence.runner.put(i, copies[i]);
        for (PageCopy& copy : copies) copy = {};
      },
      "read again", [&] { sequence.read(0, 512); });
}

/// A token after 512 others, with k drafts: the pass over all of them takes the place of k + 1
/// passes if all are accepted, and of one if none is.
static void bench_drafts(Bench& bench, const Model& model, std::size_t k) {
  const EngineOptions options{.pages = 64, .page_size = page_size, .sequences = 1, .budget = 512};
  const ModelRunner runner = model_runner(model, options);
  std::vector<std::size_t> table;
  for (std::size_t i = 0; i < options.pages; ++i) table.push_back(i);
  std::vector<int> ids(512 + k + 1);
  for (std::size_t t = 0; t < ids.size(); ++t) ids[t] = int((t * t + 7 * t) % 4096);
  Tensor<2> together = empty(k + 1, model.config().V), single = together;
  const auto read = [&](std::size_t first, std::size_t count, std::size_t wanted, Matrix logits) {
    const Chunk chunk{0, first, std::span(ids).subspan(first, count), table, wanted};
    runner.run({&chunk, 1}, logits);
  };
  const auto with_drafts = [&] { read(512, k + 1, k + 1, together); };
  const auto one_by_one = [&] {
    for (std::size_t i = 0; i <= k; ++i) read(512 + i, 1, 1, Matrix(single).rows_from(i, 1));
  };
  read(0, 512, 1, Matrix(single).rows_from(0, 1));
  with_drafts(), one_by_one();
  bench.expect_right("logits with drafts", together == single);
  const std::string drafts = fmt::format("{} draft{}", k, k == 1 ? "" : "s");
  bench.against(fmt::format("{} accepted after 512 tokens, 4 layers of C=576 in Q8_0", drafts),
                with_drafts, fmt::format("{} tokens one by one", k + 1), one_by_one);
  bench.against(fmt::format("{} rejected after 512 tokens, 4 layers of C=576 in Q8_0", drafts),
                with_drafts, "a token without drafts",
                [&] { read(512, 1, 1, Matrix(single).rows_from(0, 1)); });
}

/// Sequences of 64 tokens that get 32 more, served in one batch or one after the other.
static void bench_batch(Bench& bench, const Model& model, std::size_t sequences) {
  const auto serve = [&](std::size_t at_once) {
    const EngineOptions options{
        .pages = 512, .page_size = page_size, .sequences = at_once, .budget = 256};
    Engine engine(model_runner(model, options));
    for (std::size_t i = 0; i < sequences; ++i) {
      Request request{.prompt = std::vector<int>(64, int(i)), .max_new_tokens = 32};
      request.sampling.temperature = 0;
      engine.submit(request);
    }
    while (!engine.idle()) engine.step();
  };
  bench.against(
      fmt::format("{} sequences in one batch, 4 layers of C=576 in Q8_0", sequences),
      [&] { serve(sequences); }, "one after the other", [&] { serve(1); });
}

void bench(Bench& bench) {
  bench_attention(bench, 512, 512);
  bench_attention(bench, 1, 2048);
  bench_batch_invariant(bench, 512);
  bench_batch_invariant(bench, 1);
  const Model model = bench_model();
  bench_model_with_pages(bench, model, 0, 512);
  bench_model_with_pages(bench, model, 512, 1);
  for (const std::size_t bits : {8, 4}) {
    bench_quantized_pages(bench, model, bits, 0, 512);
    bench_quantized_pages(bench, model, bits, 512, 1);
  }
  bench_preempted_sequence(bench, model);
  for (const std::size_t k : {1, 4, 8}) bench_drafts(bench, model, k);
  bench_batch(bench, model, 4);
  bench_batch(bench, model, 16);
}

}  // namespace t2t
