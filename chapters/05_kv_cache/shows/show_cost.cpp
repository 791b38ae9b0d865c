#include "05_kv_cache/shows/show_cost.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "05_kv_cache/babbler/babbler.hpp"
#include "05_kv_cache/concatenated_cache.hpp"
#include "05_kv_cache/kv_cache.hpp"
#include "05_kv_cache/shows/one_by_one.hpp"
#include "linalg.hpp"
#include "program/print.hpp"
#include "timing/measure.hpp"

namespace t2t {

/// A step with t tokens in the text, of which `rows` go through the layer.
static double step_flops(double t, double rows, double C) {
  const double projections = 4 * 2 * C * C * rows;        // q, k, v and out
  const double pairs = rows * t - rows * (rows - 1) / 2;  // of a query and a key that it sees
  const double attention = 2 * 2 * C * pairs;             // a score and a weighted value each
  return projections + attention + 2 * 256 * C;           // and the last token's logits
}

std::vector<Cost> costs(const std::vector<Step>& steps, std::size_t C) {
  std::vector<Cost> all;
  Cost cost{0};
  for (const Step& step : steps) {
    ++cost.T;
    cost.kv_rows += step.kv_rows;
    cost.flops += step_flops(double(cost.T), double(step.kv_rows), double(C));
    if (std::ranges::find(lengths, cost.T) != lengths.end()) all.push_back(cost);
  }
  return all;
}

void show_count(const std::vector<Cost>& without, const std::vector<Cost>& with, std::size_t C) {
  print_section("Counted");
  Table table({">tokens T", ">K/V rows without", ">with", ">recomputed", ">ratio", ">MFLOP without",
               ">with", ">ratio"});
  for (std::size_t i = 0; i < without.size(); ++i)
    table.add({fmt::format("{}", without[i].T), with_commas(without[i].kv_rows),
               with_commas(with[i].kv_rows), with_commas(without[i].kv_rows - with[i].kv_rows),
               fmt::format("{:.1f}", double(without[i].kv_rows) / double(with[i].kv_rows)),
               fmt::format("{:.1f}", without[i].flops / 1e6),
               fmt::format("{:.1f}", with[i].flops / 1e6),
               fmt::format("{:.1f}", without[i].flops / with[i].flops)});
  table.print();
  fmt::print("\n");
  print_paragraph(fmt::format(
      "The text starts from one byte, so that each token is a step: 1 + 2 + … + T = T(T + 1)/2 "
      "rows without the cache, T with it. MFLOP are millions of multiplications and additions in "
      "all products at C = {}: the projections k and v, and also q, the scores, the weighted sums "
      "of values, the output projection, and the logits, which both ways compute once per step.",
      C));
}

void show_concatenated() {
  print_section("A cache by concatenation");
  const std::size_t G = 9, D = 64, T = lengths.back();
  Random random(1);
  const Tensor<2> k = random.normal<2>({T, G * D}), v = random.normal<2>({T, G * D});
  ConcatenatedCache concatenated = make_concatenated_cache(G, D);
  KvCache cache = make_kv_cache(G, T, D);
  std::size_t written_concatenated = 0, written = 0;
  Table table({">tokens T", ">bytes written, concatenated", ">in place", ">ratio"});
  for (std::size_t t = 0; t < T; ++t) {
    const ConstMatrix new_k = ConstMatrix(k).rows_from(t, 1),
                      new_v = ConstMatrix(v).rows_from(t, 1);
    written_concatenated += concatenate(concatenated, new_k, new_v);
    append(cache, new_k, new_v);
    written += 2 * G * D * sizeof(float);
    if (std::ranges::find(lengths, t + 1) != lengths.end())
      table.add({fmt::format("{}", t + 1), with_commas(written_concatenated), with_commas(written),
                 fmt::format("{:.1f}", double(written_concatenated) / double(written))});
  }
  table.print();
  fmt::print("\n");
  print_paragraph(
      "One layer with G = 9 and D = 64, one token per call. \"Concatenated\" makes new storage at "
      "each call and copies all old rows to it, as torch.cat does; \"in place\" writes the new row "
      "only.");
}

struct KnownModel {
  const char* name;
  std::size_t L, G, D, S, parameters;
};

constexpr KnownModel known_models[] = {
    {"gpt2", 12, 12, 64, 1024, 124439808},       {"smollm2-135m", 30, 3, 64, 8192, 134515008},
    {"llama-7b", 32, 32, 128, 2048, 6738415616}, {"llama2-7b", 32, 32, 128, 4096, 6738415616},
    {"llama3-8b", 32, 8, 128, 8192, 8030261248}, {"llama2-70b", 80, 8, 128, 4096, 68976648192},
};

void show_memory() {
  print_section("How much memory a cache takes");
  Table table(
      {"model", ">L", ">G", ">D", ">S", ">per token", ">S tokens, bytes", ">GiB", ">of weights"});
  for (const KnownModel& model : known_models) {
    const std::size_t token = kv_cache_bytes(model.L, model.G, 1, model.D, 2);
    const std::size_t all = kv_cache_bytes(model.L, model.G, model.S, model.D, 2);
    table.add({model.name, fmt::format("{}", model.L), fmt::format("{}", model.G),
               fmt::format("{}", model.D), fmt::format("{}", model.S),
               fmt::format("{} KiB", double(token) / 1024), with_commas(all),
               fmt::format("{:.3f}", double(all) / double(1 << 30)),
               fmt::format("{:.1f} %", 100 * double(all) / double(2 * model.parameters))});
  }
  table.print();
  fmt::print("\n");
  print_paragraph(
      "2·L·G·S·D elements of 2 bytes, for one sequence of S tokens, the longest that the model is "
      "made for. LLaMA-7B: 2·32·32·2048·128·2 = 1,073,741,824 bytes, exactly 1 GiB, or 1.07 GB. "
      "The last column is the cache's share of the weights' bytes, also at 2 bytes per parameter. "
      "G is the number of key heads, which chapter 06 makes smaller than the number of query "
      "heads.");
}

/// T tokens one by one, each appended and attended to, with both kinds of cache.
static void show_concatenated_speed() {
  Table table({">tokens T", ">concatenated", ">in place", ">ratio"});
  const std::size_t G = 9, D = 64;
  for (const std::size_t T : {128, 256, 512}) {
    Random random(1);
    const Tensor<2> x = random.normal<2>({T, G * D});
    AttentionScratch scratch(1, T);
    const Pair seconds = median_seconds_in_turn([&] { decode_concatenated(x, G, scratch); },
                                                [&] { decode_in_place(x, G, scratch); });
    table.add({fmt::format("{}", T), duration_text(seconds.first), duration_text(seconds.second),
               fmt::format("{:.1f}", seconds.first / seconds.second)});
  }
  fmt::print("\n");
  table.print();
  fmt::print("\n");
  print_paragraph(
      "Median times of append and attend, one token per call, G = 9 and D = 64: a cache that is "
      "concatenated at every step beside one that is made once.");
}

/// The shortest of three times, in seconds.
template <class Run>
double fastest_of_three(Run run) {
  using Clock = std::chrono::steady_clock;
  std::array<double, 3> seconds;
  for (double& one : seconds) {
    const Clock::time_point start = Clock::now();
    run();
    one = std::chrono::duration<double>(Clock::now() - start).count();
  }
  return std::ranges::min(seconds);
}

void show_speed(Babbler& babbler, const std::vector<int>& first, const std::vector<Cost>& without,
                const std::vector<Cost>& with, int threads) {
  print_section("Speed");
  Table table(
      {">tokens T", ">without", ">with", ">ratio", ">counted", ">GFLOP/s without", ">with"});
  KvCache cache = make_kv_cache(babbler.H, lengths.back(), babbler.width() / babbler.H);
  for (std::size_t i = 0; i < without.size(); ++i) {
    const std::size_t T = without[i].T;
    const double seconds_without = fastest_of_three([&] { generate_without(babbler, first, T); });
    const double seconds_with = fastest_of_three([&] {
      reset(cache);
      generate_with(babbler, first, T, cache);
    });
    table.add({fmt::format("{}", T), duration_text(seconds_without), duration_text(seconds_with),
               fmt::format("{:.1f}", seconds_without / seconds_with),
               fmt::format("{:.1f}", double(without[i].kv_rows) / double(with[i].kv_rows)),
               fmt::format("{:.1f}", without[i].flops / seconds_without / 1e9),
               fmt::format("{:.1f}", with[i].flops / seconds_with / 1e9)});
  }
  table.print();
  fmt::print("\n");
  print_paragraph(
      "The fastest of three runs on one core. Without the cache, a step multiplies many rows with "
      "the weights: each weight is fetched once and used for all rows. With it, each weight is "
      "fetched for one row. There is less arithmetic, but it runs at a lower rate, which keeps the "
      "ratio of the times below the counted one.");
  show_concatenated_speed();

  set_threads(threads);
  const std::size_t G = 9, S = 8192, D = 64;
  KvCache full = make_kv_cache(G, S, D);
  full.keys.fill(0), full.values.fill(0);  // zeros take as long to read as other values
  full.length = S;
  AttentionScratch scratch(1, S);
  const Tensor<2> q = xt::ones<float>({std::size_t(1), G * D});
  Tensor<2> out = empty(1, G * D);
  const double seconds =
      median_seconds([&] { attention_rows(q, cached_heads(full), Mask::causal, out, scratch); });
  fmt::print("\n");
  print_roofline_bytes("one token over [9, 8192, 64]", seconds, double(bytes(full)),
                       read_bandwidth(), "reading memory");
}

}  // namespace t2t
