#include "11_flash_attention/shows/show_steps.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "11_flash_attention/flash_attention.hpp"
#include "11_flash_attention/online_softmax.hpp"
#include "linalg.hpp"
#include "program/print.hpp"

namespace t2t {

void show_four_keys() {
  print_section("Four keys, one after the other");
  const float scores[] = {0, std::log(2.f), std::log(4.f), 0};
  const Tensor<2> values = {{8}, {4}, {2}, {16}};
  Table table({"key", ">score", ">v", ">m", ">kept", ">e^(score - m)", ">l", ">o", ">o / l"});
  OnlineSoftmax so_far(1);
  for (std::size_t s = 0; s < 4; ++s) {
    const float before = so_far.highest;
    take(so_far, scores[s], row(values, s));
    const auto number = [](float x) { return fmt::format("{:.3f}", x); };
    table.add({std::to_string(s), number(scores[s]), number(values(s, 0)), number(so_far.highest),
               number(std::exp(before - so_far.highest)),
               number(std::exp(scores[s] - so_far.highest)), number(so_far.sum),
               number(so_far.values(0)), number(mean(so_far)(0))});
  }
  table.print();
  fmt::print("\n");
  print_paragraph(
      "Divided by l, the weights are 1/8, 2/8, 4/8 and 1/8. When a score is above all scores "
      "before it, l and o are multiplied by kept before the key is added. Key 3's score is not "
      "above them, so kept is 1.");
}

/// How many scores T queries, the last of S positions, need, and how many are computed in blocks of
/// `tokens` queries: those of all keys that a query of the block sees.
struct Scores {
  std::size_t needed = 0, computed = 0;
};

static Scores count_scores(std::size_t T, std::size_t S, std::size_t tokens, Mask mask) {
  Scores count;
  for (std::size_t t = 0; t < T; ++t) count.needed += keys_seen(t, T, S, mask).size();
  for (std::size_t t = 0; t < T; t += tokens)
    count.computed += tokens * keys_seen(t, std::min(tokens, T - t), T, S, mask).size();
  return count;
}

void show_blocks() {
  const std::size_t T = 48, S = 64, tokens = 4, keys = 8;
  print_section("Which blocks of scores are computed: 48 queries, the last of 64 positions");
  for (std::size_t t = 0; t < T; t += tokens) {
    std::string line;
    const std::size_t first = keys_seen(t, T, S, Mask::causal).end;
    const std::size_t last = keys_seen(t + tokens - 1, T, S, Mask::causal).end;
    for (std::size_t s = 0; s < S; ++s)
      line += s / keys * keys + keys <= first ? "█" : s < first ? "▓" : s < last ? "▒" : "·";
    fmt::print("  queries {:>2} to {:>2}  {}\n", t, t + tokens - 1, line);
  }
  fmt::print("\n");
  const Scores count = count_scores(T, S, tokens, Mask::causal);
  const auto percent = [&](std::size_t n) { return 100 * double(n) / double(T * S); };
  print_paragraph(fmt::format(
      "A character is one key for {} queries; a block is {} keys wide. █: in a block in which each "
      "query sees each key. In the other blocks: ▓ seen by all {} queries, ▒ by some of them (the "
      "others give it weight 0), · by none. The scores marked · are not computed: a line's last "
      "block is cut after the last key that one of its queries sees. {:.1f} % of all scores are "
      "computed, {:.1f} % are needed.",
      tokens, keys, tokens, percent(count.computed), percent(count.needed)));
}

void show_window() {
  const std::size_t T = 2048, window = 256, tokens = FlashScratch(9, 3, 64).tokens();
  print_section(
      fmt::format("What a window saves: {} queries and keys, in blocks of {} queries", T, tokens));
  const Scores causal = count_scores(T, T, tokens, Mask::causal);
  Table table({"mask", ">scores needed", ">causal / this", ">scores computed", ">causal / this"});
  for (const auto& [name, mask] : {std::pair{std::string("causal"), Mask(Mask::causal)},
                                   {fmt::format("window of {}", window), Mask::sliding(window)}}) {
    const Scores count = count_scores(T, T, tokens, mask);
    const auto times = [](std::size_t all, std::size_t left) {
      return fmt::format("{:.2f}", double(all) / double(left));
    };
    table.add({name, std::to_string(count.needed), times(causal.needed, count.needed),
               std::to_string(count.computed), times(causal.computed, count.computed)});
  }
  table.print();
  fmt::print("\n");
  print_paragraph(fmt::format(
      "A query sees {} keys. The {} queries of a block together see {}, and each score of these is "
      "computed.",
      window, tokens, window + tokens - 1));
}

static std::string size_text(double bytes) {
  return bytes < 1 << 20   ? fmt::format("{:.0f} KiB", bytes / (1 << 10))
         : bytes < 1 << 30 ? fmt::format("{:.1f} MiB", bytes / (1 << 20))
                           : fmt::format("{:.1f} GiB", bytes / (1 << 30));
}

void show_memory() {
  const std::size_t H = 9, G = 3, D = 64;
  print_section("Scratch memory for a prompt of T tokens, H = 9, G = 3, D = 64");
  const FlashScratch scratch(H, G, D);
  Table table(
      {">T", ">formula: H·T²", ">chapter 04: 64·T per thread", ">flash: blocks per thread"});
  for (const std::size_t T : {128, 512, 2048, 8192, 32768, 131072}) {
    table.add({std::to_string(T), size_text(double(H * T * T * sizeof(float))),
               size_text(double(attend_floats(T, T) * sizeof(float))),
               size_text(double(scratch.bytes()) / double(scratch.threads()))});
  }
  table.print();
  fmt::print("\n");
  print_paragraph(
      "The formula stores the scores of all heads. Chapter 04's kernel stores whole rows of scores "
      "for 64 queries in each thread, and these rows grow with T. A thread's block of flash "
      "attention does not grow.");
}

/// The root of the mean squared difference of one head's output from causal attention in float64.
static double rms_error(const Tensor<2>& got, const Tensor<2>& q, const Tensor<2>& k,
                        const Tensor<2>& v) {
  const std::size_t S = k.shape(0), D = q.shape(1);
  double squares = 0;
  std::vector<double> weights(S);
  for (std::size_t t = 0; t < q.shape(0); ++t) {
    double sum = 0, highest = -INFINITY;
    for (std::size_t s = 0; s <= t; ++s) {
      weights[s] = 0;
      for (std::size_t d = 0; d < D; ++d) weights[s] += double(q(t, d)) * double(k(s, d));
      highest = std::max(highest, weights[s] /= std::sqrt(double(D)));
    }
    for (std::size_t s = 0; s <= t; ++s) sum += weights[s] = std::exp(weights[s] - highest);
    for (std::size_t d = 0; d < D; ++d) {
      double mean = 0;
      for (std::size_t s = 0; s <= t; ++s) mean += weights[s] / sum * double(v(s, d));
      const double error = mean - double(got(t, d));
      squares += error * error;  // NaN stays NaN
    }
  }
  return std::sqrt(squares / double(q.size()));
}

/// Attention whose softmax does not subtract the highest score.
static Tensor<2> without_highest(const Tensor<2>& q, const Tensor<2>& k, const Tensor<2>& v) {
  const Tensor<2> exps = xt::exp(attention_scores(q, k, Mask::causal));
  const Tensor<1> sums = xt::sum(exps, {1});
  return matmul(exps, v) / as_column(sums);
}

void show_error(const Program& program) {
  print_section("Error against float64 in units of 2^-24, T = 300, D = 64");
  const std::size_t T = 300, D = 64;
  Table table({"largest score", ">without m", ">chapter 04", ">key by key", ">in blocks"});
  for (const float size : {1.f, 3.f, 64.f}) {
    Random random(program.seed());
    const Tensor<2> q = random.normal<2>({T, D}, size), k = random.normal<2>({T, D});
    const Tensor<2> v = random.normal<2>({T, D});
    Tensor<2> blocks = empty(T, D);
    FlashScratch scratch(1, 1, D);
    flash_attention_rows(q, side_by_side(k, v, 1), Mask::causal, blocks, scratch);
    const auto digits = [&](const Tensor<2>& got) {
      const double error = rms_error(got, q, k, v) / 0x1p-24;
      return std::isnan(error) ? "NaN"
                               : fmt::format("{:.0f}", std::exp2(std::round(std::log2(error))));
    };
    const Tensor<2> scores = attention_scores(q, k, Mask::none);
    if (size == 1) {
      program.save("q", q);
      program.save("k", k);
      program.save("v", v);
      program.save("scores", scores);
      program.save("out", blocks);
    }
    table.add({fmt::format("{:.0f}", xt::amax(scores)()), digits(without_highest(q, k, v)),
               digits(attention(q, k, v, Mask::causal)),
               digits(online_attention(q, k, v, Mask::causal)), digits(blocks)});
  }
  table.print();
  fmt::print("\n");
  print_paragraph(
      "The root of the mean squared error over all elements of the output, rounded to a power of "
      "two. The unit, 2^-24, is half the distance from 1 to the next float. An error δ in a score "
      "multiplies its weight by about 1 + δ, and large scores have a larger δ. Without m, e^score "
      "overflows, because e^89 is beyond float32.");
}

}  // namespace t2t
