// What is computed with the cache and without, what of the difference the clock shows, and what a
// cache weighs. For this chapter's program.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "05_kv_cache/babbler.hpp"
#include "05_kv_cache/kv_cache.hpp"
#include "linalg.hpp"
#include "measure.hpp"
#include "print.hpp"

namespace t2t {

/// What generating T bytes took, summed over the steps.
struct Cost {
  std::size_t T;
  std::size_t kv_rows = 0;  // tokens whose keys and values were computed
  double flops = 0;         // multiplications and additions of the matrix products
  double seconds = 0;
};

constexpr std::array<std::size_t, 5> lengths = {10, 25, 50, 100, 200};

/// A step with t tokens in the text, of which `rows` go through the layer.
inline double step_flops(double t, double rows, double C) {
  const double projections = 4 * 2 * C * C * rows;        // q, k, v and out
  const double pairs = rows * t - rows * (rows - 1) / 2;  // of a query and a key that it sees
  return projections + 2 * 2 * C * pairs + 2 * 256 * C;   // a score, a value; the logits
}

/// The cost of each of `lengths`, when the first step saw a single token.
inline std::vector<Cost> costs(const std::vector<Step>& steps, std::size_t C) {
  std::vector<Cost> all;
  Cost cost{0};
  for (const Step& step : steps) {
    ++cost.T;
    cost.kv_rows += step.kv_rows;
    cost.flops += step_flops(double(cost.T), double(step.kv_rows), double(C));
    cost.seconds = step.seconds;
    if (std::ranges::find(lengths, cost.T) != lengths.end()) all.push_back(cost);
  }
  return all;
}

inline void show_count(const std::vector<Cost>& without, const std::vector<Cost>& with,
                       std::size_t C) {
  print_section("Counted");
  Table table({">tokens T", ">K/V rows without", ">with", ">ratio", ">ratio of all products"});
  for (std::size_t i = 0; i < without.size(); ++i)
    table.add({fmt::format("{}", without[i].T), with_commas(without[i].kv_rows),
               with_commas(with[i].kv_rows),
               fmt::format("{:.1f}", double(without[i].kv_rows) / double(with[i].kv_rows)),
               fmt::format("{:.1f}", without[i].flops / with[i].flops)});
  table.print();
  fmt::print("\n");
  print_paragraph(fmt::format(
      "From one byte on, so that each token is a step: 1 + 2 + … + T = T(T + 1)/2 rows without, T "
      "with. All products at C = {}: also q, the output projection, scores, the mean of values, "
      "and the logits, which are needed once a step either way.",
      C));
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

inline void show_memory() {
  print_section("What a cache weighs");
  Table table({"model", ">L", ">G", ">D", ">S", ">a token", ">full, bytes", ">GiB", ">of weights"});
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
      "2·L·G·S·D numbers of 2 bytes, for one text as long as the model takes. LLaMA-7B: "
      "2·32·32·2048·128·2 = 1,073,741,824 bytes, 1 GiB exactly, or 1.07 GB. A dozen such texts at "
      "once weigh as much as the model. G is the number of key heads: chapter 06 is about the 8 "
      "and the 3.");
}

inline void show_speed(const std::vector<Cost>& without, const std::vector<Cost>& with,
                       int threads) {
  print_section("Speed");
  Table table(
      {">tokens T", ">without", ">with", ">ratio", ">counted", ">GFLOP/s without", ">with"});
  const auto rate = [](const Cost& cost) {
    return fmt::format("{:.1f}", cost.flops / cost.seconds / 1e9);
  };
  for (std::size_t i = 0; i < without.size(); ++i)
    table.add({fmt::format("{}", without[i].T), duration_text(without[i].seconds),
               duration_text(with[i].seconds),
               fmt::format("{:.1f}", without[i].seconds / with[i].seconds),
               fmt::format("{:.1f}", double(without[i].kv_rows) / double(with[i].kv_rows)),
               rate(without[i]), rate(with[i])});
  table.print();
  fmt::print("\n");
  print_paragraph(
      "Fastest of three runs, one core. Without, a step is products of many rows: each weight is "
      "fetched once and used for all of them. With, one row fetches every weight for a single use. "
      "Less arithmetic, done at a lower rate: the clock shows less than the count.");

  set_threads(threads);
  const std::size_t G = 9, S = 8192, D = 64;
  KvCache cache = make_kv_cache(G, S, D);
  cache.length = S;
  AttentionScratch scratch(1, S);
  const Tensor<2> q = xt::ones<float>({std::size_t(1), G * D});
  Tensor<2> out = empty(1, G * D);
  const double seconds =
      median_seconds([&] { attention_rows(q, cached_heads(cache), Mask::causal, out, scratch); });
  fmt::print("\n");
  print_roofline_bytes("one token over [9, 8192, 64]", seconds, double(bytes(cache)),
                       read_bandwidth(), "a read");
}

}  // namespace t2t
