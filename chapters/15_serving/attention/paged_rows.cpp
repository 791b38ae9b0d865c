#include "15_serving/attention/paged_rows.hpp"

#include <algorithm>
#include <stdexcept>

#include "06_gqa/grouped_query_attention.hpp"
#include "rows.hpp"
#include "shapes.hpp"

namespace t2t {

Tensor<2> paged_attention(const Tensor<2>& q, const PagedRun& run, const PagedLayer& layer,
                          const ScoreRule& rule) {
  const std::size_t S = run.position + run.rows, G = layer.G, D = layer.D;
  expect_shape("q", q, {run.rows, q.shape(1)});
  expect(run.table.size() * layer.page_size >= S, "positions in the pages of the table",
         "at least " + std::to_string(S), run.table.size() * layer.page_size);
  if (layer.quantized) throw std::invalid_argument("pages: wanted floats, got quantized numbers");
  Tensor<2> k = empty(S, G * D), v = k;  // [S, G·D]
  for (std::size_t s = 0; s < S; ++s)
    for (std::size_t g = 0; g < G; ++g) {
      const std::size_t number = run.table[s / layer.page_size], offset = s % layer.page_size;
      std::ranges::copy(layer.keys_of(number, g, offset, 1).row(0), &k(s, g * D));
      std::ranges::copy(layer.values_of(number, g, offset, 1).row(0), &v(s, g * D));
    }
  return grouped_query_attention(q, k, v, q.shape(1) / D, G, rule);
}

/// The most consecutive queries of a task: they use a stretch's keys while these are in a near
/// cache.
static constexpr std::size_t most_tokens = 4;

/// The positions that a query sees, and the stretches in which they lie.
static KeyRange keys_of(std::size_t position, const Mask& mask) {
  return keys_seen(position, position + 1, position + 1, mask);
}
static KeyRange stretches_of(KeyRange keys) {
  return {keys.begin / keys_per_stretch, (keys.end - 1) / keys_per_stretch + 1};
}

/// Those of these positions that lie in a stretch, which may be none.
static KeyRange in_stretch(KeyRange keys, std::size_t stretch) {
  const std::size_t begin = std::max(keys.begin, stretch * keys_per_stretch);
  return {begin, std::max(begin, std::min(keys.end, (stretch + 1) * keys_per_stretch))};
}

/// Lists what is to be done, and makes room for the results: nothing may be allocated in a parallel
/// loop. If a run has one query, each stretch of a group is a task; if it has several, a few of
/// them with all of their stretches are one. How the work is cut changes no sum.
static void list_tasks(std::span<const PagedRun> runs, const PagedLayer& layer, std::size_t N,
                       const Mask& mask, PagedScratch& scratch) {
  std::size_t singles = 0;
  scratch.tasks.clear(), scratch.of_thread = 0;
  for (std::size_t r = 0; r < runs.size(); ++r)
    for (std::size_t g = 0; g < layer.G; ++g)
      for (std::size_t t = 0; t < runs[r].rows; t += most_tokens) {
        const std::size_t tokens = std::min(most_tokens, runs[r].rows - t);
        const std::size_t position = runs[r].position + t;
        const KeyRange all = {stretches_of(keys_of(position, mask)).begin,
                              stretches_of(keys_of(position + tokens - 1, mask)).end};
        if (runs[r].rows > 1) {
          scratch.tasks.push_back({r, g, t, tokens, all, 0});
          scratch.of_thread = std::max(scratch.of_thread, most_tokens * N * all.size());
        } else {
          for (std::size_t p = all.begin; p < all.end; ++p)
            scratch.tasks.push_back({r, g, t, 1, {p, p + 1}, singles});
          singles += N * all.size();
        }
      }
  const std::size_t threads = thread_count(), results = singles + threads * scratch.of_thread;
  scratch.pieces.resize(std::max(scratch.pieces.size(), threads));
  for (std::vector<KeyPiece>& pieces : scratch.pieces) pieces.reserve(keys_per_stretch);
  if (layer.quantized)
    scratch.loaded.resize(
        std::max(scratch.loaded.size(), threads * 2 * keys_per_stretch * whole_blocks(layer.D)));
  scratch.scores.resize(std::max(scratch.scores.size(), threads * N * keys_per_stretch));
  scratch.stretches.resize(std::max(scratch.stretches.size(), results * layer.D));
  scratch.log_sums.resize(std::max(scratch.log_sums.size(), results));
}

/// A thread's floats for quantized rows of these positions, which lie in one stretch.
struct LoadedRows {
  Matrix k, v;  // [keys, D]
};
static LoadedRows loaded_rows(const PagedLayer& layer, KeyRange keys, std::size_t thread,
                              PagedScratch& scratch) {
  const std::size_t wide = whole_blocks(layer.D), of_stretch = keys_per_stretch * wide;
  float* const k = &scratch.loaded[2 * thread * of_stretch + keys.begin % keys_per_stretch * wide];
  return {{k, keys.size(), layer.D, wide}, {k + of_stretch, keys.size(), layer.D, wide}};
}

/// If the pages are quantized, expands what a task's queries see of a stretch into floats.
static void load_stretch(std::span<const PagedRun> runs, const PagedScratch::Task& task,
                         const PagedLayer& layer, const Mask& mask, std::size_t stretch,
                         std::size_t thread, PagedScratch& scratch) {
  if (!layer.quantized) return;
  const std::size_t position = runs[task.run].position + task.first;
  const KeyRange seen = in_stretch(
      {keys_of(position, mask).begin, keys_of(position + task.tokens - 1, mask).end}, stretch);
  const LoadedRows rows = loaded_rows(layer, seen, thread, scratch);
  load_positions(*layer.quantized, runs[task.run].table, task.g, seen, rows.k, rows.v);
}

/// The keys and values of these positions, page by page. Pages that are also contiguous in memory
/// make one piece. Quantized pages have been loaded, in one piece.
static void find_pieces(const PagedRun& run, const PagedLayer& layer, std::size_t g, KeyRange keys,
                        std::size_t thread, PagedScratch& scratch) {
  std::vector<KeyPiece>& pieces = scratch.pieces[thread];
  pieces.clear();
  if (layer.quantized) {
    const LoadedRows rows = loaded_rows(layer, keys, thread, scratch);
    return pieces.push_back({rows.k, rows.v});
  }
  for (std::size_t s = keys.begin; s < keys.end;) {
    const std::size_t number = run.table[s / layer.page_size], offset = s % layer.page_size;
    const std::size_t count = std::min(layer.page_size - offset, keys.end - s);
    if (s > keys.begin && number == run.table[s / layer.page_size - 1] + 1)
      pieces.back().k.rows += count, pieces.back().v.rows += count;
    else
      pieces.push_back(
          {layer.keys_of(number, g, offset, count), layer.values_of(number, g, offset, count)});
    s += count;
  }
}

/// One query of a task, and the results that it has for each of P stretches, from `results` on.
struct Query {
  const PagedRun& run;
  std::size_t t, g, results;
  KeyRange keys, stretches;  // that it sees

  Query(const PagedRun& run, std::size_t t, std::size_t g, std::size_t results, const Mask& mask)
      : run(run),
        t(t),
        g(g),
        results(results),
        keys(keys_of(run.position + t, mask)),
        stretches(stretches_of(keys)) {}
};

/// The query with the heads of its group over what it sees of a stretch.
static void attend_query(ConstMatrix q, const Query& query, std::size_t stretch,
                         const PagedLayer& layer, const ScoreRule& rule, std::size_t thread,
                         PagedScratch& scratch) {
  const std::size_t D = layer.D, N = q.cols / D / layer.G, P = query.stretches.size();
  const KeyRange keys = in_stretch(query.keys, stretch);
  if (keys.size() == 0) return;  // only other queries of the task see this stretch
  find_pieces(query.run, layer, query.g, keys, thread, scratch);
  const std::size_t at = query.results + stretch - query.stretches.begin;
  attend_stretch({q.row(query.run.first + query.t).data() + query.g * N * D, N, D, D},
                 scratch.pieces[thread],
                 {&scratch.scores[thread * N * keys_per_stretch], N, keys.size(), keys.size()},
                 {&scratch.stretches[at * D], N, D, P * D}, {&scratch.log_sums[at], N, 1, P}, rule);
}

/// Joins the query's stretches, head by head.
static void join_query(const Query& query, const PagedLayer& layer, PagedScratch& scratch,
                       Matrix out) {
  const std::size_t D = layer.D, N = out.cols / D / layer.G, P = query.stretches.size();
  for (std::size_t n = 0; n < N; ++n) {
    const std::size_t at = query.results + n * P;
    join_stretches({&scratch.stretches[at * D], P, D, D}, {&scratch.log_sums[at], P},
                   out.row(query.run.first + query.t).subspan((query.g * N + n) * D, D));
  }
}

void paged_attention_rows(ConstMatrix q, std::span<const PagedRun> runs, const PagedLayer& layer,
                          const ScoreRule& rule, Matrix out, PagedScratch& scratch) {
  const std::size_t N = q.cols / layer.D / layer.G;
  list_tasks(runs, layer, N, rule.mask, scratch);
  const auto query_of = [&](const PagedScratch::Task& task, std::size_t t, std::size_t results) {
    return Query(runs[task.run], t, task.g, results, rule.mask);
  };

  const std::size_t floats = most_tokens * N * keys_per_stretch * layer.D;
  const std::size_t of_threads = scratch.log_sums.size() - thread_count() * scratch.of_thread;
  for_each_task(scratch.tasks.size(), floats, [&](std::size_t i, std::size_t thread) {
    const PagedScratch::Task& task = scratch.tasks[i];
    if (runs[task.run].rows == 1) {
      load_stretch(runs, task, layer, rule.mask, task.stretches.begin, thread, scratch);
      return attend_query(q, query_of(task, 0, task.results), task.stretches.begin, layer, rule,
                          thread, scratch);
    }
    // All queries of the task use a stretch before the next one is read.
    const std::size_t own = of_threads + thread * scratch.of_thread;
    const auto query = [&](std::size_t i) {
      return query_of(task, task.first + i, own + i * N * task.stretches.size());
    };
    for (std::size_t p = task.stretches.begin; p < task.stretches.end; ++p) {
      load_stretch(runs, task, layer, rule.mask, p, thread, scratch);
      for (std::size_t i = 0; i < task.tokens; ++i)
        attend_query(q, query(i), p, layer, rule, thread, scratch);
    }
    for (std::size_t i = 0; i < task.tokens; ++i) join_query(query(i), layer, scratch, out);
  });

  // A single query's stretches are joined when all of them are there.
  for (const PagedScratch::Task& task : scratch.tasks) {
    if (runs[task.run].rows > 1) continue;
    const Query query = query_of(task, 0, task.results);
    if (task.stretches.begin == query.stretches.begin) join_query(query, layer, scratch, out);
  }
}

}  // namespace t2t
