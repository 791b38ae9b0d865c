// Shows a text that is continued token by token with and without the cache, what each way computes,
// how long it takes, and how much memory a cache takes.
#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "01_embedding/byte_text.hpp"
#include "01_embedding/embedding.hpp"
#include "05_kv_cache/babbler/babbler.hpp"
#include "05_kv_cache/kv_cache.hpp"
#include "05_kv_cache/shows/figure.hpp"
#include "05_kv_cache/shows/show_cache.hpp"
#include "05_kv_cache/shows/show_cost.hpp"
#include "files/files.hpp"
#include "linalg.hpp"
#include "memory.hpp"
#include "program/print.hpp"
#include "program/program.hpp"
#include "rows.hpp"
#include "shapes.hpp"

using namespace t2t;

static void show_side_by_side(Babbler& babbler, const std::vector<int>& ids, std::size_t count,
                              KvCache& cache) {
  print_section("Side by side");
  const std::vector<Step> without = generate_without(babbler, ids, count);
  const std::vector<Step> with = generate_with(babbler, ids, count, cache);

  Table table({">step", "without", ">K/V rows", "", "with cache", ">K/V rows"});
  std::size_t sum_without = 0, sum_with = 0;
  std::string babble;
  for (std::size_t i = 0; i < count; ++i) {
    sum_without += without[i].kv_rows, sum_with += with[i].kv_rows;
    babble += char(with[i].token);
    if (without[i].token != with[i].token)
      throw std::runtime_error(
          fmt::format("step {}: the two ways chose different bytes, whose logits are equal up to "
                      "rounding; try another --seed",
                      i + 1));
    if (i < 5 || i + 1 == count)
      table.add({fmt::format("{}", i + 1), quoted_byte(without[i].token),
                 fmt::format("{}", without[i].kv_rows),
                 bar(double(without[i].kv_rows) / double(ids.size() + count), 24),
                 quoted_byte(with[i].token), fmt::format("{}", with[i].kv_rows)});
  }
  table.add({"sum", "", fmt::format("{}", sum_without), "", "", fmt::format("{}", sum_with)});
  table.print();

  std::string text;
  for (const int id : ids) text += char(id);
  fmt::print("\n");
  print_paragraph(
      fmt::format("The prompt and what follows: {} | {}", visible(text), visible(babble)));
  print_paragraph(
      "The layer has learned nothing, so it babbles, and it babbles the same both ways. The first "
      "step computes the whole prompt either way. After that, each step with the cache computes "
      "one row.");
}

/// The chapter's figure: the prompt continued in both ways.
static std::string drawn_steps(Babbler& babbler, const std::vector<int>& ids, std::size_t count,
                               KvCache& cache) {
  const std::vector<Step> without = generate_without(babbler, ids, count);
  const std::vector<Step> with = generate_with(babbler, ids, count, cache);
  std::string text(ids.begin(), ids.end());
  for (const Step& step : with) text += char(step.token);
  return figure_of_steps(text, without, with);
}

/// Bytes of the weights, two caches, the RoPE table and the scores of 64 queries.
static double bytes_needed(double C, double H, double S) {
  return sizeof(float) * (4 * C * C + 256 * C + S * (4 * C + C / H + 64));
}

/// What the flags say.
struct CacheFlags {
  std::size_t P = 24, count = 12, C = 256, H = 16, S = 64;
  std::string svg;
};

static void add_flags(Program& program, CacheFlags& flags) {
  program.takes_text();
  program.size("prompt", flags.P, "bytes of the text to use as the prompt");
  program.size("tokens", flags.count, "bytes to generate");
  program.size("width", flags.C, "channels of a token's vector, C");
  program.size("heads", flags.H, "heads, H; C must be a multiple of 2·H");
  program.size("context", flags.S, "positions of the cache, S");
  program.output("svg", flags.svg, "write the chapter's figure to this file and stop");
}

/// The prompt. Throws std::invalid_argument for flags that can't be.
static std::vector<int> prompt_of(const Program& program, const CacheFlags& flags) {
  const auto& [P, count, C, H, S, svg] = flags;
  expect(C % (2 * H) == 0, "--width", fmt::format("a multiple of 2 · {} heads", H), C);
  for (const auto& [flag, bytes] : {std::pair("--prompt", P), std::pair("--tokens", count)})
    expect(bytes <= 2048, flag,
           "at most 2048, since without the cache each step recomputes all of them", bytes);
  std::vector<int> ids = byte_ids(program.text(P));
  const std::size_t needed = ids.size() + std::max<std::size_t>(count, 2);
  expect(S >= needed, "--context", fmt::format("room for prompt and tokens, at least {}", needed),
         S);
  expect_memory(bytes_needed(double(C), double(H), double(S)), "--width and --context");
  return ids;
}

static void save_all(const Program& program, const std::vector<int>& ids, const Babbler& babbler,
                     const KvCache& cache, const Tensor<2>& logits) {
  program.save("ids", ids);
  program.save("table", babbler.table);
  program.save("w_q", babbler.weights.w_q);
  program.save("w_k", babbler.weights.w_k);
  program.save("w_v", babbler.weights.w_v);
  program.save("w_o", babbler.weights.w_o);
  const auto filled = [&](const Tensor<3>& heads) -> Tensor<3> {
    return xt::view(heads, xt::all(), xt::range(0, cache.length), xt::all());
  };
  program.save("keys", filled(cache.keys));
  program.save("values", filled(cache.values));
  program.save("logits", logits);
}

/// The first bytes of the prompt go through the layer; the cache keeps their keys and values.
static void show_flow(const Program& program, Babbler& babbler, const std::vector<int>& ids,
                      const CacheFlags& flags, KvCache& cache) {
  const std::size_t C = flags.C, H = flags.H, S = flags.S;
  const std::size_t few = std::min<std::size_t>(ids.size(), 12);
  const Tensor<2> logits = logits_with(babbler, std::span(ids).first(few), cache);
  print_section("What flows through");
  print_shapes(
      {{"x", {few, C}, "the first bytes of the text, embedded"},
       {"q, k, v", {few, C}, "each x times a matrix [C, C] of its own"},
       {"cache.keys", {H, S, C / H}, "k, rotated, one head after the other, with room for more"},
       {"cache.values", {H, S, C / H}, "v, one head after the other"},
       {"out", {few, C}, "each head's weighted mean of the values that it sees"},
       {"logits", {1, 256}, "of the last token: a score for each byte that may come next"}});
  show_storage(ids, cache);
  save_all(program, ids, babbler, cache, logits);
}

/// What a long text costs with the cache and without it.
static void show_costs(Babbler& babbler, int first_id, const CacheFlags& flags, int threads) {
  const std::vector<int> first = {first_id};
  KvCache all = make_kv_cache(flags.H, lengths.back(), flags.C / flags.H);
  const std::vector<Cost> with = costs(generate_with(babbler, first, lengths.back(), all), flags.C);
  const std::vector<Cost> without =
      costs(generate_without(babbler, first, lengths.back()), flags.C);
  show_count(without, with, flags.C);
  show_concatenated();
  show_memory();
  show_refusals();
  show_speed(babbler, first, without, with, threads);
}

int main(int argc, char** argv) {
  CacheFlags flags;
  Program program(
      "05_kv_cache",
      "Continues a text token by token, with the KV cache and without it: the same bytes with less "
      "work.");
  add_flags(program, flags);
  program.has_solutions(solutions);
  return program.run(argc, argv, [&] {
    const std::vector<int> ids = prompt_of(program, flags);
    // So small a layer is fastest on one core; the last figure of show_speed uses all cores again.
    const int threads = int(thread_count());
    set_threads(1);
    Random random(program.seed());
    const std::size_t longest = std::max({lengths.back(), flags.S, ids.size() + flags.count});
    Babbler babbler = draw_babbler(flags.C, flags.H, longest, random);
    KvCache cache = make_kv_cache(flags.H, flags.S, flags.C / flags.H);
    if (!flags.svg.empty())
      return write_file(flags.svg, drawn_steps(babbler, ids, flags.count, cache));
    show_flow(program, babbler, ids, flags, cache);
    show_session(babbler, ids, flags.S);
    reset(cache);
    show_side_by_side(babbler, ids, flags.count, cache);
    show_costs(babbler, ids.front(), flags, threads);
    fmt::print(
        "\n  Next: ./learn run 06, fewer heads of keys and values; the page: "
        "docs/05_kv_cache.md\n");
  });
}
