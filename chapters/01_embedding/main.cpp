// Shows how text becomes ids, ids become rows of a table, and rows become logits.
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "01_embedding/byte_text.hpp"
#include "01_embedding/embedding.hpp"
#include "01_embedding/neighbours.hpp"
#include "01_embedding/samples.hpp"
#include "memory.hpp"
#include "program/print.hpp"
#include "program/program.hpp"
#include "timing/measure.hpp"

using namespace t2t;

static constexpr std::size_t V = 256;  // each byte is a token

static void show_tokens(const std::vector<int>& ids) {
  print_section("Text becomes ids");
  print_ids(ids);
  print_paragraph(
      "Each byte of the UTF-8 text is a token, and its id is the byte's value. A character outside "
      "ASCII takes two to four bytes, so it becomes two to four tokens:");
  fmt::print("\n");
  Table table({"code point", ">tokens", "ids", "character"});
  for (const auto& [point, character] :
       {std::pair("U+0041", "A"), std::pair("U+00E9", "é"), std::pair("U+20AC", "€"),
        std::pair("U+4E2D", "中"), std::pair("U+1F600", "😀")}) {
    const std::vector<int> bytes = byte_ids(character);
    table.add({point, fmt::format("{}", bytes.size()), fmt::format("{}", fmt::join(bytes, " ")),
               character});
  }
  table.print();
}

/// The ids themselves as vectors: the table's single column is v for id v.
static void show_ids_as_vectors(const std::vector<int>& ids) {
  Tensor<2> table = empty(V, 1), x = empty(ids.size(), 1);  // [V, 1], [T, 1]
  for (std::size_t v = 0; v < V; ++v) table(v, 0) = float(v);
  embed_rows(ids, table, x);
  const Tensor<2> scores = unembed(x, table);  // [T, V]

  print_section("If the id itself were the vector");
  Table lines({"token", ">its id", ">score of its own id", ">largest score", "of id"});
  std::size_t own_best = 0;
  for (std::size_t t = 0; t < ids.size(); ++t) {
    const ConstRow all = row(scores, t);
    const auto best = std::ranges::max_element(all);
    own_best += best - all.begin() == ids[t];
    if (t < 4)
      lines.add({quoted_byte(ids[t]), fmt::format("{}", ids[t]),
                 fmt::format("{:.0f}", all[std::size_t(ids[t])]), fmt::format("{:.0f}", *best),
                 fmt::format("{}", best - all.begin())});
  }
  lines.print();
  fmt::print("\n");
  print_paragraph(fmt::format("{} of {} tokens have the largest score for their own id.", own_best,
                              ids.size()));
}

static void show_rows(const std::vector<int>& ids, const Tensor<2>& x) {
  print_section("The rows selected");
  std::vector<std::string> labels;
  for (const int id : ids) labels.push_back(byte_text(id));
  print_heat_map(x, {.row_labels = labels, .col_labels = {}, .diverging = true});

  // The most frequent token, so that its row can be seen several times.
  std::array<std::size_t, V> places_of{};
  for (const int id : ids) ++places_of[std::size_t(id)];
  const int most = *std::ranges::max_element(ids, {}, [&](int id) { return places_of[id]; });
  std::vector<std::size_t> places;
  for (std::size_t t = 0; t < ids.size() && places.size() < 8; ++t)
    if (ids[t] == most) places.push_back(t);
  fmt::print("\n");
  print_paragraph(fmt::format(
      "Each line is one token's row of the table. Token {} is at positions {}, counted from 0, "
      "and its row is the same at each: a row does not depend on the position.",
      quoted_byte(most), fmt::join(places, ", ")));
}

static void show_neighbours(const Tensor<2>& table, int id) {
  print_section("Neighbours");
  const std::vector<Neighbour> others = neighbours(table, std::size_t(id));  // [V - 1]
  std::vector<double> cosines;
  for (const Neighbour& other : others) cosines.push_back(other.cosine);

  Table lines({"nearest to " + quoted_byte(id), ">id", ">cosine", ""});
  for (const std::size_t place : {0, 1, 2, 254}) {
    const auto [cosine, v] = others[place];
    lines.add({fmt::format("{:>3}. {}", place + 1, quoted_byte(v)), fmt::format("{}", v),
               fmt::format("{:.2f}", cosine), bar(std::abs(cosine), 24)});
  }
  lines.print();
  fmt::print("\n  all 255, from -1 to 1   {}\n\n", histogram(cosines, 1));
  print_paragraph(fmt::format(
      "These cosines have no meaning yet. In a random table they have mean 0 and standard "
      "deviation 1/sqrt(C) = {:.2f} (here {:.2f}). Training is what makes rows similar (chapter "
      "13).",
      1 / std::sqrt(double(table.shape(1))), deviation(cosines)));
}

static void show_logits(const std::vector<int>& ids, const Tensor<2>& logits, std::size_t C) {
  print_section("Back through the same table");
  Table lines(
      {"token", ">own score, |row|²", ">largest other", "of", ">standard deviation of others"});
  std::size_t own_best = 0;
  for (std::size_t t = 0; t < ids.size(); ++t) {
    std::vector<double> others(row(logits, t).begin(), row(logits, t).end());
    const double own = std::exchange(others[std::size_t(ids[t])], 0);
    const auto best = std::ranges::max_element(others);
    own_best += own > *best;
    if (t < 4)
      lines.add({quoted_byte(ids[t]), fmt::format("{:.4f}", own), fmt::format("{:.4f}", *best),
                 quoted_byte(int(best - others.begin())),
                 fmt::format("{:.4f}", deviation(others))});
  }
  lines.print();

  const double square = 0.02 * 0.02, root = std::sqrt(double(C));
  fmt::print("\n");
  print_paragraph(
      fmt::format("The dot product of a row with itself is the square of its length, about C·0.02² "
                  "= {:.4f}. With another row it is a sum of C products of either sign, whose "
                  "standard deviation is sqrt(C)·0.02² = {:.4f}, sqrt(C) = {:.1f} times smaller. "
                  "{} of {} tokens have the largest score for their own row.",
                  double(C) * square, root * square, root, own_best, ids.size()));
}

static void show_start(const Tensor<2>& table) {
  print_section("How a table begins");
  const std::vector<double> values(table.begin(), table.end());
  const double n = double(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / n;

  Table lines(
      {with_commas(values.size()) + " elements", ">here", ">N(0, 0.02²)", ">standard error"});
  lines.add({"mean", fmt::format("{:.2g}", mean), "0", fmt::format("{:.2g}", 0.02 / std::sqrt(n))});
  lines.add({"standard deviation", fmt::format("{:.5f}", deviation(values)), "0.02",
             fmt::format("{:.5f}", 0.02 / std::sqrt(2 * n))});
  for (const auto& [deviations, p] : {std::pair(1, 0.6827), std::pair(2, 0.9545)}) {
    const auto inside = std::ranges::count_if(
        values, [limit = 0.02 * deviations](double value) { return std::abs(value) < limit; });
    lines.add({fmt::format("within ±{:.2f}", 0.02 * deviations),
               fmt::format("{:.2f} %", 100 * double(inside) / n), fmt::format("{:.2f} %", 100 * p),
               fmt::format("{:.2f} %", 100 * std::sqrt(p * (1 - p) / n))});
  }
  lines.print();
  fmt::print("\n  from -0.06 to 0.06   {}\n\n", histogram(values, 0.06));
  print_paragraph(
      "The standard error says how far a figure computed from this many random numbers typically "
      "lies from the exact one. If 0.02 were the variance, the standard deviation would be 0.14.");
}

/// The total parameters are those that chapter 09 counts.
static void show_weight() {
  print_section("What a table weighs");
  Table lines({"model", ">V", ">C", ">V·C", ">all parameters", "head", ">tables' share"});
  const auto line = [&](const char* name, std::size_t rows, std::size_t C, std::size_t all,
                        bool tied) {
    const std::size_t in_tables = rows * C * (tied ? 1 : 2);
    lines.add({name, with_commas(rows), with_commas(C), with_commas(rows * C), with_commas(all),
               tied ? "tied" : "separate",
               fmt::format("{:.2f} %", 100 * double(in_tables) / double(all))});
  };
  line("llama2-7b", 32000, 4096, 6738415616, false);
  line("gpt2", 50257, 768, 124439808, true);
  line("smollm2-135m", 49152, 576, 134515008, true);
  line("foundry-small", 8192, 256, 7078144, false);
  line("foundry-small", 8192, 256, 4980992, true);
  lines.print();
  fmt::print("\n");
  print_paragraph(
      "A model with a separate head has a second table for the logits, and the share counts both. "
      "Tying saves a large part of a small model and a small part of a large one.");
}

static void show_speed(Random& random) {
  print_section("Speed");

  // Both ways at the size of foundry-small, after a check that they agree.
  const Tensor<2> table = embedding_table(8192, 256, random);
  const std::vector<int> ids = scattered_ids(64, 8192, random);
  Tensor<2> x = empty(64, 256), product = embed(ids, table);
  embed_rows(ids, table, x);
  if (x != product) throw std::runtime_error("look-up and one-hot product differ");
  const auto [look_up, formula] = median_seconds_in_turn([&] { embed_rows(ids, table, x); },
                                                         [&] { product = embed(ids, table); });
  fmt::print("  64 tokens, table [8192, 256]: look-up {}, one-hot {}, {:.0f} times\n",
             duration_text(look_up), duration_text(formula), formula / look_up);

  // Rows from the whole of a table that is larger than the caches.
  const Tensor<2> large = xt::ones<float>({32000, 1024});
  const std::vector<int> many = scattered_ids(32768, 32000, random);
  Tensor<2> picked = empty(many.size(), 1024);
  const double seconds = median_seconds([&] { embed_rows(many, large, picked); });
  print_roofline_bytes("32768 tokens, table [32000, 1024]", seconds,
                       2.0 * double(picked.size()) * sizeof(float), copy_bandwidth(),
                       "copying memory");
}

/// The table, once as floats and once as doubles for its statistics; x and the logits.
static double bytes_needed(double T, double C) { return sizeof(float) * (3 * V * C + T * (C + V)); }

int main(int argc, char** argv) {
  std::size_t T = 16, C = 32;
  std::string words;
  Program program("01_embedding",
                  "Turns text into ids, ids into rows of a table, and rows into logits.");
  program.takes_text();
  program.size("tokens", T, "bytes of the text to use, T");
  program.size("width", C, "channels of a token's vector, C");
  program.word("ids", words, "ids to look up instead of a text's, such as \"1,2,3\"");
  program.has_solutions(solutions);
  return program.run(argc, argv, [&] {
    const std::vector<int> ids =
        program.given("ids") ? ids_by_hand(words) : byte_ids(program.text(T));
    expect_memory(bytes_needed(double(ids.size()), double(C)), "--tokens and --width");
    // [calls]
    Random random(program.seed());
    const Tensor<2> table = embedding_table(V, C, random);  // [V, C]
    Tensor<2> x = empty(ids.size(), C);                     // [T, C]
    embed_rows(ids, table, x);
    const Tensor<2> logits = unembed(x, table);  // [T, V]
    // [/calls]
    program.save("ids", ids);
    program.save("table", table);
    program.save("x", x);
    program.save("logits", logits);

    show_tokens(ids);
    show_ids_as_vectors(ids);
    print_section("What flows through");
    print_shapes({{"ids", {ids.size()}, "one id for each byte of the text, T"},
                  {"table", {V, C}, "one row for each id below V, learned"},
                  {"x", {ids.size(), C}, "row t is row ids[t] of the table"},
                  {"logits", {ids.size(), V}, "x · tableᵀ: a score for each id"}});
    show_rows(ids, x);
    show_neighbours(table, ids.front());
    show_logits(ids, logits, C);
    show_start(table);
    show_weight();
    show_speed(random);

    fmt::print("\n  Next: ./learn run 02, the norms. The page: docs/01_embedding.md\n");
  });
}
