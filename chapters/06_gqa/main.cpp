// Shows which head reads which keys, what sharing saves, what the wrong order does, and how a long
// cache is read once for all heads of a group.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "01_embedding/embedding.hpp"
#include "05_kv_cache/kv_cache.hpp"
#include "06_gqa/costs.hpp"
#include "06_gqa/decode_attention.hpp"
#include "06_gqa/grouped_query_attention.hpp"
#include "06_gqa/grouped_rows.hpp"
#include "linalg.hpp"
#include "measure.hpp"
#include "memory.hpp"
#include "print.hpp"
#include "program.hpp"
#include "rows.hpp"

using namespace t2t;

namespace {

struct Sizes {
  std::size_t T = 64, C = 128, H = 8, G = 2, D = 16;
};

/// The weights, the rows of tokens, and each thread's scores.
double bytes_needed(double T, double C, double H, double G, double D) {
  const double all_heads = 2 * (H + G) * D, scores = 64 * T * double(thread_count() + 1);
  return sizeof(float) * (C * all_heads + T * (2 * C + all_heads) + 256 * C + scores);
}

/// The order that is not meant: heads dealt out to the groups one by one.
std::size_t tiled_group(std::size_t h, std::size_t G) { return h % G; }

/// Root mean square of what differs between two heads' outputs, over that of the first.
double relative_error(ConstMatrix want, ConstMatrix got) {
  double error = 0, size = 0;
  for (std::size_t t = 0; t < want.rows; ++t)
    for (std::size_t d = 0; d < want.cols; ++d) {
      error += std::pow(double(want.row(t)[d]) - double(got.row(t)[d]), 2);
      size += std::pow(double(want.row(t)[d]), 2);
    }
  return std::sqrt(error / size);
}

void show_who_reads_what(std::size_t H, std::size_t G) {
  print_section("Who reads which keys");
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
      "The group of each query head. Neighbours share. Tiled heads differ only where a group has "
      "neighbours to mix up: at G = 1 and G = H both orders are one, and so they are at the first "
      "head and at the last.");
}

/// The text's bytes as vectors of size-1 numbers, as a norm layer would hand them over: [T, C].
Tensor<2> text_rows(const std::vector<int>& ids, std::size_t C, Random& random) {
  Tensor<2> x = empty(ids.size(), C);
  embed_rows(ids, random.normal<2>({256, C}), x);
  return x;
}

/// What the projections give, [T, ...], and what attention makes of it.
struct Flow {
  Tensor<2> q, k, v, heads, y;
};

Flow run_layer(const Tensor<2>& x, const GroupedWeights& weights, const Sizes& sizes) {
  const auto& [T, C, H, G, D] = sizes;
  Flow flow = {matmul_bt(x, weights.w_q),
               matmul_bt(x, weights.w_k),
               matmul_bt(x, weights.w_v),
               empty(x.shape(0), H * D),
               {}};
  GroupedScratch scratch(x.shape(0), x.shape(0), H, D);
  grouped_attention_rows(flow.q, side_by_side(flow.k, flow.v, G), Mask::causal, flow.heads,
                         scratch);
  flow.y = matmul_bt(flow.heads, weights.w_o);
  return flow;
}

void show_wrong_order(const Flow& flow, std::size_t H, std::size_t G, std::size_t D) {
  print_section("The wrong order, head by head");
  const std::size_t T = flow.q.shape(0);
  Tensor<2> tiled = empty(T, D);  // one head, reading group h mod G
  Tensor<1> scratch = empty(attend_floats(T, T));
  Table table({">head", ">reads group", ">tiled", ">error / size", ""});
  for (std::size_t h = 0; h < std::min<std::size_t>(H, 12); ++h) {
    const std::size_t g = tiled_group(h, G);
    attend(ConstMatrix(flow.q).head(h, D), ConstMatrix(flow.k).head(g, D),
           ConstMatrix(flow.v).head(g, D), Mask::causal, tiled, row(scratch));
    const double error = relative_error(ConstMatrix(flow.heads).head(h, D), tiled);
    table.add({std::to_string(h), std::to_string(group_of(h, H, G)), std::to_string(g),
               fmt::format("{:.2f}", error), bar(error / 2, 24)});
  }
  table.print();
  fmt::print("\n");
  print_paragraph(
      "Right at some heads, unrelated at the others (two unrelated vectors of one size differ by "
      "1.41 of it). Shapes agree and nothing throws.");
}

void show_text(const Program& program, const Sizes& sizes) {
  const auto& [most, C, H, G, D] = sizes;
  const std::vector<int> ids = byte_ids(program.text(most));
  const std::size_t T = ids.size();
  Random random(program.seed());
  const Tensor<2> x = text_rows(ids, C, random);  // [T, C]
  const GroupedWeights weights = draw_grouped_weights(C, H, G, D, random);
  const Flow flow = run_layer(x, weights, sizes);
  show_wrong_order(flow, H, G, D);

  print_section("What flowed through");
  print_shapes({{"x", {T, C}, "a token a row"},
                {"w_q", {H * D, C}, fmt::format("H = {} query heads", H)},
                {"w_k, w_v", {G * D, C}, fmt::format("G = {} heads of keys and values", G)},
                {"q", {T, H * D}, "each token asks with H heads"},
                {"k, v", {T, G * D}, "and leaves G: this is what a cache keeps"},
                {"scores", {H, T, T}, "head h against the keys of its group"},
                {"heads", {T, H * D}, "as wide as with G = H"},
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
  // What the token looks for stands in the third quarter: those keys lean towards its query.
  for (std::size_t s = 2 * count; s < 3 * count; ++s)
    for (std::size_t d = 0; d < D; ++d) k(s, d) += 0.4f * q(0, d);
  Tensor<2> stretches = empty(P, D), log_sums = empty(1, P), scores = empty(1, count);
  for (std::size_t p = 0; p < P; ++p)
    attend_stretch(q, ConstMatrix(k).rows_from(p * count, count),
                   ConstMatrix(v).rows_from(p * count, count), scores,
                   Matrix(stretches).rows_from(p, 1), Matrix(log_sums).cols_from(p, 1));
  Tensor<2> joined = empty(1, D), averaged = empty(1, D);
  const Tensor<2> level = xt::zeros<float>({1ul, P});  // as if all stretches counted alike
  const Tensor<2> want = attention(q, k, v, Mask::none);
  join_stretches(stretches, row(std::as_const(log_sums), 0), row(joined, 0));
  join_stretches(stretches, row(level, 0), row(averaged, 0));

  double total = 0;
  for (const float log_sum : log_sums) total += std::exp(double(log_sum));
  Table table({"keys", ">log of sum of powers", ">share", "", ">its out[0]"});
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
      "Each stretch is a softmax of its own; joined, each counts by the sum of its powers e^score. "
      "The third holds what this query looks for.");
}

void show_speed() {
  print_section("Speed");
  const std::size_t H = 9, D = 64, S = 8192;
  Tensor<2> q = xt::ones<float>({1ul, H * D}), out = empty(1, H * D);
  GroupedScratch scratch(1, S, H, D);
  for (const std::size_t G : {9, 3, 1}) {
    // Enough layers that each call finds its cache in memory, not in the processor.
    const std::size_t L = 36 / G;
    std::vector<KvCache> caches(L, make_kv_cache(G, S, D));
    for (KvCache& cache : caches) cache.length = S;
    const double seconds = median_seconds([&] {
      for (const KvCache& cache : caches)
        grouped_attention_rows(q, cached_heads(cache), Mask::causal, out, scratch);
    });
    print_roofline_bytes(fmt::format("decode a layer, G={} S={}", G, S), seconds / double(L),
                         double(bytes(caches[0])), read_bandwidth(), "a read");
  }
  fmt::print("\n");
  print_paragraph(
      "Next: ./learn run 07, what a token does between attentions; the page: docs/06_gqa.md");
}

}  // namespace

int main(int argc, char** argv) {
  Sizes sizes;
  Program program("06_gqa",
                  "Query heads that share keys and values: who reads which, and what it saves.");
  program.takes_text();
  program.size("tokens", sizes.T, "bytes of the text, T");
  program.size("width", sizes.C, "numbers a token, C");
  program.size("heads", sizes.H, "query heads, H");
  program.size("groups", sizes.G, "heads of keys and values, G, which divides H");
  program.size("head-dim", sizes.D, "numbers a head, D");

  return program.run(argc, argv, [&] {
    expect_groups(sizes.H, sizes.G);
    const double T = double(program.text(sizes.T).size());
    expect_memory(
        bytes_needed(T, double(sizes.C), double(sizes.H), double(sizes.G), double(sizes.D)),
        "--tokens, --width, --heads, --groups and --head-dim");
    show_who_reads_what(sizes.H, sizes.G);
    show_text(program, sizes);
    print_costs();
    print_models();
    show_stretches(program.seed());
    show_speed();
  });
}
