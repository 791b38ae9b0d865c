// Shows what the two norms do to a token's vector, what each ignores, and what each costs.
#include <fmt/core.h>

#include <cmath>
#include <utility>

#include "01_embedding/byte_text.hpp"
#include "01_embedding/embedding.hpp"
#include "02_normalization/cost.hpp"
#include "02_normalization/fast/layer_norm_rows.hpp"
#include "02_normalization/fast/rms_norm_rows.hpp"
#include "02_normalization/layer_norm.hpp"
#include "02_normalization/rms_norm.hpp"
#include "linalg.hpp"
#include "memory.hpp"
#include "program/print.hpp"
#include "program/program.hpp"
#include "shapes.hpp"

using namespace t2t;

static float mean_of(ConstRow x) {
  double sum = 0;
  for (const float value : x) sum += value;
  return float(sum / double(x.size()));
}
static float rms_of(ConstRow x) {
  double sum = 0;
  for (const float value : x) sum += double(value) * value;
  return float(std::sqrt(sum / double(x.size())));
}
/// Three decimals, and no "-0.000".
static std::string short_number(double value) {
  return fmt::format("{:.3f}", std::abs(value) < 5e-4 ? 0.0 : value);
}

/// The rms of the vectors when each of 32 layers adds a product with a random matrix to them, and
/// of a layer's input with a norm before it.
static void show_growth(const Program& program) {
  constexpr std::size_t T = 16, C = 64;
  Random random(program.seed());
  const Tensor<2> start = random.normal<2>({T, C});  // [T, C]
  Tensor<2> bare = start, normed = start;            // [T, C]

  print_section("32 layers, each of which adds to the vectors");
  Table table({"layers before", ">rms of x, no norms", ">rms of x, with norms", ">rms of norm(x)"});
  const auto rms = [](const Tensor<2>& x) { return rms_of({x.data(), x.size()}); };
  for (std::size_t l = 0; l <= 32; ++l) {
    const Tensor<2> read = rms_norm(normed, ones(C));  // [T, C]
    if (l < 3 || l % 8 == 0)
      table.add({fmt::format("{}", l), fmt::format("{:.3g}", rms(bare)),
                 fmt::format("{:.3g}", rms(normed)), fmt::format("{:.3g}", rms(read))});
    const Tensor<2> w = random.normal<2>({C, C}, 1 / std::sqrt(float(C)));  // [out, in]
    bare = bare + matmul_bt(bare, w);
    normed = normed + matmul_bt(read, w);
  }
  table.print();
}

/// One short row through both norms, one step on each line, to check on paper.
static void show_one_row() {
  const Tensor<2> x = {{3, 5}};                                 // [1, C]
  const Tensor<1> mean = xt::mean(x, {1});                      // [1]
  const Tensor<2> centred = x - as_column(mean);                // [1, C]
  const Tensor<1> variance = xt::mean(centred * centred, {1});  // [1]
  const Tensor<2> layer = layer_norm(x, ones(2), zeros(2), 8);  // [1, C]
  const Tensor<1> mean_square = xt::mean(x * x, {1});           // [1]
  const Tensor<2> rms = rms_norm(x, ones(2), 8);                // [1, C]

  print_section("One row through both norms, eps 8");
  Table table({"step", ">", ">", ""});
  const auto both = [&](const char* step, const Tensor<2>& v, const char* note) {
    table.add({step, short_number(v(0, 0)), short_number(v(0, 1)), note});
  };
  const auto one = [&](const char* step, double value, const char* note) {
    table.add({step, short_number(value), "", note});
  };
  both("x", x, "");
  one("mean square", mean_square(0), "(9 + 25) / 2");
  both("RMSNorm", rms, "x / sqrt(17 + 8)");
  one("mean", mean(0), "");
  both("x - mean", centred, "");
  one("variance", variance(0), "(1 + 1) / 2");
  both("LayerNorm", layer, "(x - mean) / sqrt(1 + 8)");
  table.print();
}

static void show_text(const Program& program, const Settings& set) {
  const std::string text = program.text(set.T);
  const std::vector<int> ids = byte_ids(text);  // [T]
  // [calls]
  Random random(program.seed());
  const Tensor<2> table = embedding_table(256, set.C, random);                 // [V, C]
  const Tensor<2> x = embed(ids, table);                                       // [T, C]
  const Tensor<1> gain = ones(set.C), bias = zeros(set.C);                     // [C]
  Tensor<2> rms = empty(ids.size(), set.C), layer = empty(ids.size(), set.C);  // [T, C]
  rms_norm_rows(x, row(gain), set.eps, rms);
  layer_norm_rows(x, row(gain), row(bias), set.eps, layer);
  // [/calls]
  program.save("ids", ids), program.save("x", x), program.save("gain", gain);
  program.save("bias", bias), program.save("rms_norm", rms), program.save("layer_norm", layer);

  print_section("Embedded text");
  print_shapes({{"x", {ids.size(), set.C}, "embedded bytes, one in each row"},
                {"gain, bias", {set.C}, "1 and 0 at the start of training"},
                {"mean square", {ids.size()}, "one value for each row"},
                {"y", {ids.size(), set.C}, "the rows, normalized"}});
  fmt::print("\n");
  Table rows({"token", ">mean of x", ">rms of x", ">rms of RMSNorm", ">mean of LayerNorm",
              ">rms of LayerNorm"});
  for (std::size_t t = 0; t < std::min<std::size_t>(5, ids.size()); ++t)
    rows.add({byte_text(ids[t]), short_number(mean_of(row(x, t))), short_number(rms_of(row(x, t))),
              short_number(rms_of(row(rms, t))), short_number(mean_of(row(layer, t))),
              short_number(rms_of(row(layer, t)))});
  rows.print();
  fmt::print("\n");
  print_paragraph(fmt::format(
      "The table's elements are drawn from N(0, 0.02²), so each row has an rms near 0.02 before "
      "the norm. After it the rms is not exactly 1, because eps = {:g} is added to a mean square "
      "near 0.0004.",
      set.eps));
}

/// The largest difference between two elements in the same place.
static double largest_change(const Tensor<2>& before, const Tensor<2>& after) {
  double most = 0;
  for (std::size_t i = 0; i < before.size(); ++i)
    most = std::max(most, std::abs(double(before.data()[i]) - after.data()[i]));
  return most;
}

static void show_what_is_ignored(const Program& program) {
  Random random(program.seed());
  const Tensor<2> x = random.normal<2>({8, 64});                      // [T, C]
  const Tensor<2> shifted = x + 3, scaled = x * 10, turned = -1 * x;  // [T, C]
  const auto layer = [](const Tensor<2>& v) { return layer_norm(v, ones(64), zeros(64)); };
  const auto rms = [](const Tensor<2>& v) { return rms_norm(v, ones(64)); };

  print_section("What each norm ignores");
  Table table({"largest change of the result", ">x + 3", ">x · 10", ">x · -1", "ignores"});
  table.add({"LayerNorm", fmt::format("{:.3f}", largest_change(layer(x), layer(shifted))),
             fmt::format("{:.3f}", largest_change(layer(x), layer(scaled))),
             fmt::format("{:.3f}", largest_change(layer(x), layer(turned))), "shift and size"});
  table.add({"RMSNorm", fmt::format("{:.3f}", largest_change(rms(x), rms(shifted))),
             fmt::format("{:.3f}", largest_change(rms(x), rms(scaled))),
             fmt::format("{:.3f}", largest_change(rms(x), rms(turned))), "size"});
  table.print();
}

static void show_eps(float eps) {
  print_section("Where eps is added");
  Table table({"rms of x", ">eps inside the root", ">eps outside", ">no eps"});
  for (const float size : {1.0f, 0.1f, 0.01f, 0.001f}) {
    const Tensor<2> x = {{size, -size, size, -size}};
    const double inside = rms_of(row(rms_norm(x, ones(4), eps), 0));
    const double outside = size / (double(size) + double(eps)), none = 1;
    table.add({fmt::format("{:g}", size), short_number(inside), short_number(outside),
               short_number(none)});
  }
  table.print();
  fmt::print("\n");
  print_paragraph(fmt::format(
      "The table shows the rms of RMSNorm's result for eps {:g}. With eps inside the root, a row "
      "whose mean square is below eps stays small. With eps outside, it comes out nearly as large "
      "as any other.",
      eps));
}

static void show_laziness(const Program& program) {
  Random random(program.seed());
  constexpr std::size_t T = 8, C = 64;
  const Tensor<2> x = random.normal<2>({T, C});
  std::size_t squares = 0;
  const auto square = [&](float value) { return ++squares, value * value; };

  // Not to be imitated: with `auto` the mean is recomputed for each element of slow.
  const auto lazy_mean = xt::mean(xt::make_lambda_xfunction(square, x), {1});
  const Tensor<2> slow = x / xt::sqrt(xt::view(lazy_mean, xt::all(), xt::newaxis()));
  const std::size_t lazily = std::exchange(squares, 0);

  const Tensor<1> mean = xt::mean(xt::make_lambda_xfunction(square, x), {1});
  const Tensor<2> fast = x / xt::sqrt(as_column(mean));

  print_section("A lazy mean, counted");
  Table table({"type of the mean square of [8, 64]", ">elements squared", "", "results"});
  table.add({"auto (lazy)", with_commas(lazily), "T·C·C", ""});
  table.add({"Tensor<1> (evaluated)", with_commas(squares), "T·C",
             largest_change(slow, fast) < 1e-5 ? "the same" : "not the same"});
  table.print();
}

/// The timed block needs the most: seven matrices and the rows between them.
static double bytes_needed(double T, double C) {
  return sizeof(float) * (7 * C * C + 11 * T * C + 256 * (T + C));
}

int main(int argc, char** argv) {
  Settings set;
  Program program("02_normalization",
                  "Normalizes the vectors of all tokens, with LayerNorm and with RMSNorm.");
  program.takes_text();
  program.size("tokens", set.T, "bytes of the text to use, and rows of the timed block, T");
  program.size("width", set.C, "channels of a token's vector, C");
  program.number("eps", set.eps, "added to the mean square inside the root");
  program.has_solutions(solutions);
  return program.run(argc, argv, [&] {
    expect(set.eps >= 0, "--eps", "0 or more", set.eps);
    expect_memory(bytes_needed(double(set.T), double(set.C)), "--tokens and --width");
    show_growth(program);
    show_one_row();
    show_text(program, set);
    show_what_is_ignored(program);
    show_eps(set.eps);
    show_laziness(program);
    show_speed(set);
    show_share_of_a_block(set);
    fmt::print("\n");
    print_paragraph(
        "Next: ./learn run 03, how a token learns its position. The page: "
        "docs/02_normalization.md");
  });
}
