// Shows where tokens look: scores and weights of one sentence, four masks, why scores are divided
// by the root of D, many heads, and what a recurrent cell had forgotten by then.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "01_embedding/embedding.hpp"
#include "04_causal_attention/multi_head.hpp"
#include "04_causal_attention/recurrence.hpp"
#include "04_causal_attention/softmax.hpp"
#include "linalg.hpp"
#include "measure.hpp"
#include "memory.hpp"
#include "print.hpp"
#include "program.hpp"
#include "shapes.hpp"

using namespace t2t;

static std::vector<std::string> letters(const std::vector<int>& ids) {
  std::vector<std::string> shown;
  for (const int id : ids) shown.push_back(id < 128 ? visible(std::string(1, char(id))) : "?");
  return shown;
}

/// Tokens are their own queries and keys: equal letters agree, so that one can predict which keys a
/// query finds.
static void show_one_head(const Program& program, const Tensor<2>& x,
                          const std::vector<std::string>& labels) {
  const Tensor<2> scores = attention_scores(x, x, Mask::causal);  // [T, S]
  const Tensor<2> weights = softmax(scores);                      // [T, S]
  program.save("scores", scores);
  program.save("weights", weights);

  print_section("Scores: how well each token agrees with those before it");
  print_heat_map(scores, {labels, labels, true});
  print_section("Weights: softmax of each row");
  print_heat_map(weights, {labels, labels});
  fmt::print("\n");
  print_paragraph(
      "A row is a query, a column a key. Here each token is its own query and key, so it "
      "agrees with itself and its equals: where a letter comes again, it looks at both. The "
      "first row has one key to look at, and weight 1.");
}

static void show_masks() {
  constexpr std::size_t T = 5;
  const Tensor<2> masks[] = {attention_mask(T, T, Mask::none), attention_mask(T, T, Mask::causal),
                             attention_mask(T, T, Mask::sliding(2)),
                             attention_mask(T, 7, Mask::none)};
  print_section("Four masks: a query's row shows the keys it sees");
  fmt::print("  bidirectional    causal           sliding, W = 2   cross\n");
  for (std::size_t t = 0; t < T; ++t) {
    std::string line = "  ";
    for (const Tensor<2>& mask : masks) {
      std::string cells;
      for (const float added : row(mask, t)) cells += added == 0 ? "█ " : "· ";
      line += cells + std::string(17 - 2 * mask.shape(1), ' ');
    }
    fmt::print("{}\n", line.substr(0, line.find_last_not_of(' ') + 1));
  }
  fmt::print("\n");
  print_paragraph(
      "Cross attention looks at another text, here of 7 tokens, all of which are known already.");
}

/// Means over rows of weights, and one median.
struct Spread {
  double entropy = 0, largest = 0, slope = 0;

  explicit Spread(const Tensor<2>& weights) {
    std::vector<double> slopes;
    for (std::size_t t = 0; t < weights.shape(0); ++t) {
      double bits = 0, squares = 0;
      for (const double weight : row(weights, t)) {
        if (weight > 0) bits -= weight * std::log2(weight);
        squares += weight * weight;
      }
      entropy += bits / double(weights.shape(0));
      largest += *std::ranges::max_element(row(weights, t)) / double(weights.shape(0));
      slopes.push_back(1 - squares);  // Σ over s of ∂weight[s]/∂score[s] = weight − weight²
    }
    std::ranges::nth_element(slopes, slopes.begin() + long(slopes.size() / 2));
    slope = slopes[slopes.size() / 2];
  }
};

static void show_root(const Program& program) {
  print_section("Why scores are divided by the root of D");
  Table table(
      {">D", ">variance", ">entropy", ">largest", ">slope", "", ">entropy", ">largest", ">slope"});
  fmt::print("                  softmax(q·k)               softmax(q·k / √D)\n");
  for (const std::size_t D : {4, 16, 64, 256, 1024}) {
    Random random(program.seed());
    const Tensor<2> q = random.normal<2>({256, D}), k = random.normal<2>({64, D});
    const Tensor<2> divided = attention_scores(q, k, Mask::none);  // [256, 64]
    const Tensor<2> bare = divided * std::sqrt(float(D));
    const double variance = double(xt::mean(bare * bare)());

    std::vector<std::string> cells = {std::to_string(D), fmt::format("{:.1f}", variance)};
    for (const Tensor<2>& scores : {bare, divided}) {
      const Spread spread(softmax(scores));
      cells.push_back(fmt::format("{:.2f}", spread.entropy));
      cells.push_back(fmt::format("{:.2f}", spread.largest));
      cells.push_back(fmt::format("{:.4f}", spread.slope));
      if (cells.size() == 5) cells.push_back("");
    }
    table.add(cells);
  }
  table.print();
  fmt::print("\n");
  print_paragraph(
      "256 random queries against 64 keys, all numbers from N(0, 1). Entropy in bits, 6 when "
      "all keys weigh the same; slope is the sum over keys of d weight / d score, in the "
      "middle one of the rows: where it is near 0, training can't tell the scores which way to "
      "go.");
}

static void show_heads(const Program& program, const Tensor<2>& x, std::size_t H,
                       const std::vector<std::string>& labels) {
  const std::size_t T = x.shape(0), C = x.shape(1);
  Random random(program.seed());
  const AttentionWeights weights = draw_attention_weights(C, random);
  const Tensor<2> out = multi_head_attention(x, weights, H, Mask::causal);  // [T, C]
  program.save("w_q", weights.w_q);
  program.save("w_k", weights.w_k);
  program.save("w_v", weights.w_v);
  program.save("w_o", weights.w_o);
  program.save("out", out);

  print_section("Many heads: where the last token looks, head by head");
  const Tensor<3> q = split_heads(matmul_bt(x, weights.w_q), H);  // [H, T, D]
  const Tensor<3> k = split_heads(matmul_bt(x, weights.w_k), H);  // [H, T, D]
  Tensor<2> last = empty(H, T);                                   // [H, S]
  std::vector<std::string> names;
  for (std::size_t h = 0; h < H; ++h) {
    const Tensor<2> head = attention_weights(xt::view(q, h), xt::view(k, h), Mask::causal);
    xt::view(last, h) = xt::view(head, T - 1);
    names.push_back("head " + std::to_string(h));
  }
  print_heat_map(last, {names, labels});
  fmt::print("\n");
  print_shapes({{"x", {T, C}, "a token a row"},
                {"q, k, v", {T, C}, "x·Wᵀ, one product each"},
                {"split", {H, T, C / H}, "H heads of D = C / H channels"},
                {"scores", {H, T, T}, "q·kᵀ / √D + mask"},
                {"heads", {H, T, C / H}, "softmax(scores)·v"},
                {"merged", {T, C}, "side by side again"},
                {"out", {T, C}, "merged·w_oᵀ: the heads are mixed"}});
}

static void show_split() {
  print_section("Split, not reshape: two tokens a and b, 4 channels, 2 heads");
  const Tensor<2> x = {{0, 1, 2, 3}, {10, 11, 12, 13}};
  const Tensor<3> split = split_heads(x, 2);
  Tensor<3> reshaped = empty(2, 2, 2);
  std::copy(x.begin(), x.end(), reshaped.begin());

  const auto name = [](float v) { return fmt::format("{}{}", v < 10 ? 'a' : 'b', int(v) % 10); };
  fmt::print("                   x               split_heads    reshape to [H, T, D]\n");
  for (std::size_t h = 0; h < 2; ++h)
    for (std::size_t t = 0; t < 2; ++t) {
      std::string line = fmt::format("  head {}, token {}  ", h, t);
      for (std::size_t c = 0; c < 4; ++c) line += h == 0 ? name(x(t, c)) + " " : "   ";
      for (const Tensor<3>& heads : {split, reshaped})
        line += fmt::format("    {} {}       ", name(heads(h, t, 0)), name(heads(h, t, 1)));
      fmt::print("{}\n", line.substr(0, line.find_last_not_of(' ') + 1));
    }
  fmt::print("\n");
  print_paragraph(
      "A reshape keeps the order of the numbers in memory: head 0 would be all of token a, and "
      "its two \"tokens\" the halves of one. Nothing complains, and the mask hides the wrong "
      "things.");
}

static void show_recurrence(const Program& program) {
  constexpr std::size_t T = 65, C = 64;
  Random random(program.seed());
  const Tensor<2> x = random.normal<2>({T, C});
  const RecurrentCell cell = draw_recurrent_cell(C, random);
  const Tensor<2> states = recurrence(x, cell);                                  // [T, C]
  const Tensor<1> echo = recurrence_echo(states, cell, random.normal<1>({C}));   // [T]
  const Tensor<2> k = random.normal<2>({T, C}), any = random.normal<2>({T, C});  // [T, C]
  const Tensor<2> asked = xt::ones<float>({T, C}) * xt::view(k, 0, xt::all());   // [T, C]
  const Tensor<2> by_chance = attention_weights(any, k, Mask::causal);           // [T, T]
  const Tensor<2> if_asked = attention_weights(asked, k, Mask::causal);          // [T, T]
  program.save("states", states);
  program.save("echo", echo);

  print_section("The foil: what token 0 leaves at token t");
  Table table({">t", ">recurrence", "", ">attention, by chance", ">if t asks for it"});
  for (const std::size_t t : {1, 4, 16, 64})
    table.add({std::to_string(t), fmt::format("{:.0e}", echo(t)), "after as many steps",
               fmt::format("{:.3f}", by_chance(t, 0)), fmt::format("{:.3f}", if_asked(t, 0))});
  table.print();
  fmt::print("\n");
  print_paragraph(
      "Recurrence: the share of a small change of state 0 that arrives. Attention: the weight "
      "of token 0, one step away from each later token.");
}

static void show_speed(const Program& program) {
  print_section("Speed");
  constexpr std::size_t T = 512, H = 9, D = 64, C = H * D;
  Random random(program.seed());
  Tensor<2> rows = random.normal<2>({8192, 1024});
  print_roofline_bytes("softmax_rows [8192, 1024]", median_seconds([&] { softmax_rows(rows); }),
                       2.0 * double(rows.size() * sizeof(float)), update_bandwidth(), "an update");

  const Tensor<2> q = random.normal<2>({T, C}), k = random.normal<2>({T, C});
  const Tensor<2> v = random.normal<2>({T, C});
  Tensor<2> out = empty(T, C);
  AttentionScratch scratch(T, T);
  const double flops = 4 * pairs_seen(T, T, Mask::causal) * C;  // two products a pair
  print_roofline_flops("attention_rows H=9 T=512 D=64", median_seconds([&] {
                         attention_rows(q, side_by_side(k, v, H), Mask::causal, out, scratch);
                       }),
                       flops);
  const RecurrentCell cell = draw_recurrent_cell(C, random);
  print_roofline_flops("recurrence T=512 C=576", median_seconds([&] { out = recurrence(q, cell); }),
                       4.0 * T * C * C);
}

/// The weights, rows of tokens, and scores as the formula holds them: for each head several times.
static double bytes_needed(double T, double C, double H) {
  return sizeof(float) * (4 * C * C + 256 * (T + C) + 16 * T * C + (5 * H + 4) * T * T);
}

int main(int argc, char** argv) {
  std::size_t T = 12, C = 16, H = 4;
  Program program("04_causal_attention",
                  "Each token looks at the ones before it: scores, masks, weights, many heads.");
  program.takes_text();
  program.size("tokens", T, "bytes of the text to look at, T");
  program.size("width", C, "numbers a token, C");
  program.size("heads", H, "heads that share them, H: a divisor of C");

  return program.run(argc, argv, [&] {
    expect(T <= 2048, "--tokens", "at most 2048, as every token meets every other", double(T));
    expect_memory(bytes_needed(double(T), double(C), double(H)), "--tokens, --width and --heads");
    const std::vector<int> ids = byte_ids(program.text(T));  // [T]
    Random random(program.seed());
    const Tensor<2> table = random.normal<2>({256, C});  // [V, C]
    const Tensor<2> x = embed(ids, table);               // [T, C]
    split_heads(x, H);                                   // refuses H before anything is shown
    program.save("ids", ids);
    program.save("x", x);

    show_one_head(program, x, letters(ids));
    show_masks();
    show_root(program);
    show_heads(program, x, H, letters(ids));
    show_split();
    show_recurrence(program);
    show_speed(program);
    fmt::print("\n  Next: ./learn run 05 keeps k and v; the page: docs/04_causal_attention.md\n");
  });
}
