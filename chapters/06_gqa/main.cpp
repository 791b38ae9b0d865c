// Shows which query head reads which keys, what a wrong order of heads does, what sharing saves,
// and how a long cache is read in stretches, once for all heads of a group.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "01_embedding/embedding.hpp"
#include "03_rope/fast/rope_rows.hpp"
#include "05_kv_cache/kv_cache.hpp"
#include "06_gqa/fast/decode_attention.hpp"
#include "06_gqa/fast/grouped_rows.hpp"
#include "06_gqa/grouped_query_attention.hpp"
#include "06_gqa/shows/costs.hpp"
#include "linalg.hpp"
#include "memory.hpp"
#include "program/print.hpp"
#include "program/program.hpp"
#include "rows.hpp"
#include "shapes.hpp"
#include "timing/measure.hpp"

using namespace t2t;

namespace {

struct Sizes {
  std::size_t T = 64, C = 128, H = 8, G = 2, D = 16;
};

/// Bytes of the weights, the rows of tokens, the cache, the RoPE table and each thread's scores.
double bytes_needed(double T, double C, double H, double G, double D) {
  const double all_heads = 2 * (H + G) * D, scores = 64 * T * double(thread_count() + 1);
  const double rows = T * (2 * C + all_heads + 2 * G * D + D);
  return sizeof(float) * (C * all_heads + rows + 256 * C + scores);
}

/// The wrong order: query heads are given to the groups in turn.
std::size_t tiled_group(std::size_t h, std::size_t G) { return h % G; }

/// Root mean square of the difference of two heads' outputs, divided by that of the first.
double relative_error(ConstMatrix want, ConstMatrix got) {
  double error = 0, size = 0;
  for (std::size_t t = 0; t < want.rows; ++t)
    for (std::size_t d = 0; d < want.cols; ++d) {
      error += std::pow(double(want.row(t)[d]) - double(got.row(t)[d]), 2);
      size += std::pow(double(want.row(t)[d]), 2);
    }
  return std::sqrt(error / size);
}

void show_groups(std::size_t H, std::size_t G) {
  print_section("Which head reads which group");
  std::vector<std::string> header = {"query head"};
  for (std::size_t h = 0; h < std::min<std::size_t>(H, 12); ++h)
    header.push_back(">" + std::to_string(h));
  Table table(header);
  const auto add = [&](const std::string& name, auto group) {
    std::vector<std::string> cells = {name};
    for (std::size_t h = 0; h + 1 < header.size(); ++h) cells.push_back(std::to_string(group(h)));
    table.add(cells);
  };
  add(fmt::format("G = {}, multi-head", H), [&](std::size_t h) { return group_of(h, H, H); });
  add(fmt::format("G = {}, grouped", G), [&](std::size_t h) { return group_of(h, H, G); });
  add("G = 1, multi-query", [&](std::size_t h) { return group_of(h, H, 1); });
  add(fmt::format("G = {}, tiled: wrong", G), [&](std::size_t h) { return tiled_group(h, G); });
  table.print();
  fmt::print("\n");
  print_paragraph(
      "Each cell is the group that the query head above it reads. Neighbouring heads share a "
      "group. The tiled order agrees with the right order at the first head and at the last, and "
      "everywhere if G = 1 or G = H.");
}

/// A random vector for each byte, its elements of size about 1 as after a normalization: [T, C].
Tensor<2> text_rows(const std::vector<int>& ids, std::size_t C, Random& random) {
  Tensor<2> x = empty(ids.size(), C);
  embed_rows(ids, random.normal<2>({256, C}), x);
  return x;
}

/// The tensors of one call.
struct Flow {
  Tensor<2> q;      // [T, H·D], rotated
  Tensor<2> heads;  // [T, H·D], attention's output
  Tensor<2> y;      // [T, C], the layer's output
};

/// One attention layer with a cache, called with the T new tokens only: all of a prompt, or one.
Flow run_layer(const Tensor<2>& x, const GroupedWeights& weights, const RopeTable& rope,
               KvCache& cache, GroupedScratch& scratch) {
  const std::size_t D = cache.keys.shape(2), position = cache.length;
  Tensor<2> q = matmul_bt(x, weights.w_q);        // [T, H·D]
  const Tensor<2> k = matmul_bt(x, weights.w_k);  // [T, G·D]
  const Tensor<2> v = matmul_bt(x, weights.w_v);  // [T, G·D]
  append_rotated(cache, k, v, rope, Pairing::halves);
  rope_rows(q, D, rope, position, Pairing::halves);

  Tensor<2> heads = empty(q.shape(0), q.shape(1));  // [T, H·D]
  grouped_attention_rows(q, cached_heads(cache), Mask::causal, heads, scratch);
  const Tensor<2> y = matmul_bt(heads, weights.w_o);  // [T, C]
  return {q, heads, y};
}

void show_wrong_order(const Flow& flow, const KeyValueHeads& cached, std::size_t H) {
  print_section("The wrong order, head by head");
  const std::size_t T = flow.q.shape(0), G = cached.G, D = cached.D();
  Tensor<2> tiled = empty(T, D);  // one head, reading group h mod G
  Tensor<1> scratch = empty(attend_floats(T, T));
  Table table({">head", ">reads group", ">tiled", ">error / size", ""});
  for (std::size_t h = 0; h < std::min<std::size_t>(H, 12); ++h) {
    const std::size_t g = tiled_group(h, G);
    attend(ConstMatrix(flow.q).head(h, D), cached.keys(g), cached.values(g), Mask::causal, tiled,
           row(scratch));
    const double error = relative_error(ConstMatrix(flow.heads).head(h, D), tiled);
    table.add({std::to_string(h), std::to_string(group_of(h, H, G)), std::to_string(g),
               fmt::format("{:.2f}", error), bar(error / 2, 24)});
  }
  table.print();
  fmt::print("\n");
  print_paragraph(
      "Error / size is the root mean square of the difference, divided by that of the right "
      "output. It is 0 where both orders read the same group. Two unrelated outputs of the same "
      "size would give √2 = 1.41. Shapes agree and nothing throws.");
}

void show_text(const Program& program, const Sizes& sizes) {
  const auto& [most, C, H, G, D] = sizes;
  const std::vector<int> ids = byte_ids(program.text(most));
  const std::size_t T = ids.size();
  Random random(program.seed());
  const Tensor<2> x = text_rows(ids, C, random);  // [T, C]
  const GroupedWeights weights = draw_grouped_weights(C, H, G, D, random);
  const RopeTable rope = rope_table(T, rope_frequencies(D));
  KvCache cache = make_kv_cache(G, T, D);
  GroupedScratch of_calls(T, T, H, D);
  const Flow flow = run_layer(x, weights, rope, cache, of_calls);
  show_wrong_order(flow, cached_heads(cache), H);

  print_section("What flowed through");
  print_shapes({{"x", {T, C}, "each row is a token"},
                {"w_q", {H * D, C}, fmt::format("H = {} query heads", H)},
                {"w_k, w_v", {G * D, C}, fmt::format("G = {} heads of keys and values", G)},
                {"q", {T, H * D}, "x · w_qᵀ: H queries per token"},
                {"k, v", {T, G * D}, "x · w_kᵀ and x · w_vᵀ: G keys and values per token"},
                {"cache", {G, T, D}, "rotated keys, and values, [G, T, D] each"},
                {"scores", {H, T, T}, "each query head with the keys of its group"},
                {"heads", {T, H * D}, "attention's output, as wide as with G = H"},
                {"y", {T, C}, "heads · w_oᵀ"}});
  program.save("x", x);
  program.save("w_q", weights.w_q);
  program.save("w_k", weights.w_k);
  program.save("w_v", weights.w_v);
  program.save("w_o", weights.w_o);
  program.save("heads", flow.heads);
  program.save("y", flow.y);
}

void show_stretches(std::size_t seed) {
  print_section("One cache in four stretches, joined");
  const std::size_t S = 2048, D = 16, P = stretch_count(S), count = S / P;
  Random random(seed);
  const Tensor<2> q = random.normal<2>({1, D}), v = random.normal<2>({S, D});
  Tensor<2> k = random.normal<2>({S, D});
  // The keys of the third quarter get a multiple of the query added, so that they score higher.
  for (std::size_t s = 2 * count; s < 3 * count; ++s)
    for (std::size_t d = 0; d < D; ++d) k(s, d) += 0.4f * q(0, d);
  Tensor<2> stretches = empty(P, D), log_sums = empty(1, P), scores = empty(1, count);
  for (std::size_t p = 0; p < P; ++p)
    attend_stretch(q, ConstMatrix(k).rows_from(p * count, count),
                   ConstMatrix(v).rows_from(p * count, count), scores,
                   Matrix(stretches).rows_from(p, 1), Matrix(log_sums).cols_from(p, 1));
  Tensor<2> joined = empty(1, D), averaged = empty(1, D);
  const Tensor<2> level = xt::zeros<float>({1ul, P});  // as if all sums were equal
  const Tensor<2> want = attention(q, k, v, Mask::none);
  join_stretches(stretches, row(std::as_const(log_sums), 0), row(joined, 0));
  join_stretches(stretches, row(level, 0), row(averaged, 0));

  double total = 0;
  for (const float log_sum : log_sums) total += std::exp(double(log_sum));
  Table table({"keys", ">log Σ e^score", ">share of the sum", "", ">out[0]"});
  for (std::size_t p = 0; p < P; ++p) {
    const double share = std::exp(double(log_sums(0, p))) / total;
    table.add({fmt::format("{} to {}", p * count, (p + 1) * count - 1),
               fmt::format("{:.3f}", log_sums(0, p)), fmt::format("{:.3f}", share), bar(share, 14),
               fmt::format("{:.4f}", stretches(p, 0))});
  }
  table.add({"joined", "", "1.000", "", fmt::format("{:.4f}", joined(0, 0))});
  table.add({"all at once", "", "", "", fmt::format("{:.4f}", want(0, 0))});
  table.add({"plain mean: wrong", "", "", "", fmt::format("{:.4f}", averaged(0, 0))});
  table.print();
  fmt::print("\n");
  print_paragraph(
      "Each stretch has a softmax of its own. When they are joined, each counts by its share of "
      "the sum of all e^score. The third stretch holds the keys that match this query best.");
}

void show_speed() {
  print_section("Speed");
  const std::size_t H = 9, D = 64, S = 8192;
  Tensor<2> q = xt::ones<float>({1ul, H * D}), out = empty(1, H * D);
  GroupedScratch scratch(1, S, H, D);
  for (const std::size_t G : {9, 3, 1}) {
    // Enough layers that no cache is still in the processor's caches when its turn comes again.
    const std::size_t L = 36 / G;
    std::vector<KvCache> caches(L, make_kv_cache(G, S, D));
    for (KvCache& cache : caches) cache.length = S;
    const double seconds = median_seconds([&] {
      for (const KvCache& cache : caches)
        grouped_attention_rows(q, cached_heads(cache), Mask::causal, out, scratch);
    });
    print_roofline_bytes(fmt::format("decode a layer, G={} S={}", G, S), seconds / double(L),
                         double(bytes(caches[0])), read_bandwidth(), "reading memory");
  }
  fmt::print("\n");
  print_paragraph("Next: ./learn run 07, the feed-forward network; the page: docs/06_gqa.md");
}

}  // namespace

int main(int argc, char** argv) {
  Sizes sizes;
  Program program("06_gqa",
                  "Query heads that share keys and values: which reads which, and what it saves.");
  program.takes_text();
  program.size("tokens", sizes.T, "bytes of the text, T");
  program.size("width", sizes.C, "channels of a token's vector, C");
  program.size("heads", sizes.H, "query heads, H");
  program.size("groups", sizes.G, "heads of keys and values, G, which divides H");
  program.size("head-dim", sizes.D, "width of a head, D, which is even");
  program.has_solutions(solutions);
  return program.run(argc, argv, [&] {
    expect_groups(sizes.H, sizes.G);
    expect(sizes.D % 2 == 0, "--head-dim", "an even number, for RoPE", sizes.D);
    const double T = double(program.text(sizes.T).size());
    expect_memory(
        bytes_needed(T, double(sizes.C), double(sizes.H), double(sizes.G), double(sizes.D)),
        "--tokens, --width, --heads, --groups and --head-dim");
    show_groups(sizes.H, sizes.G);
    show_text(program, sizes);
    print_costs();
    print_operations();
    print_models();
    show_stretches(program.seed());
    show_speed();
  });
}
