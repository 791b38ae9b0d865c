// Shows what the two norms keep of a token's vector and what they forget, and what each costs.
#include <fmt/core.h>

#include <cmath>
#include <utility>

#include "01_embedding/byte_text.hpp"
#include "01_embedding/embedding.hpp"
#include "02_normalization/cost.hpp"
#include "02_normalization/layer_norm.hpp"
#include "02_normalization/rms_norm.hpp"
#include "memory.hpp"
#include "print.hpp"
#include "program.hpp"
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

/// One short row through LayerNorm, a step a line, so that each number can be checked on paper.
static void show_one_row() {
  const Tensor<2> x = {{1, 3, 5, 7}};                               // [1, C]
  const Tensor<1> mean = xt::mean(x, {1});                          // [1]
  const Tensor<2> centred = x - as_column(mean);                    // [1, C]
  const Tensor<1> variance = xt::mean(centred * centred, {1});      // [1]
  const Tensor<2> layer = layer_norm(x, ones(4), zeros(4), 0.01f);  // [1, C]
  const Tensor<1> mean_square = xt::mean(x * x, {1});               // [1]
  const Tensor<2> rms = rms_norm(x, ones(4), 0.01f);                // [1, C]
  const float layer_after = rms_of(row(layer, 0)), rms_after = rms_of(row(rms, 0));

  print_section("One row through both, eps 0.01");
  Table table({"step", ">", ">", ">", ">", ""});
  const auto four = [&](const char* step, const Tensor<2>& v, const char* note) {
    table.add({step, short_number(v(0, 0)), short_number(v(0, 1)), short_number(v(0, 2)),
               short_number(v(0, 3)), note});
  };
  const auto one = [&](const char* step, double value, const char* note) {
    table.add({step, short_number(value), "", "", "", note});
  };
  four("x", x, "");
  one("mean", mean(0), "");
  four("x - mean", centred, "");
  one("variance", variance(0), "mean of the squares above");
  four("LayerNorm", layer, "/ sqrt(variance + eps)");
  one("its mean square", layer_after * layer_after, "5 / 5.01: that is eps");
  one("mean square of x", mean_square(0), "(1 + 9 + 25 + 49) / 4");
  four("RMSNorm", rms, "x / sqrt(mean square + eps)");
  one("its mean square", rms_after * rms_after, "21 / 21.01");
  table.print();
}

static void show_text(const Program& program, const Settings& set) {
  const std::string text = program.text(set.T);
  const std::vector<int> ids = byte_ids(text);  // [T]
  Random random(program.seed());
  const Tensor<2> table = embedding_table(256, set.C, random);  // [V, C]
  const Tensor<2> x = embed(ids, table);                        // [T, C]
  const Tensor<1> gain = ones(set.C), bias = zeros(set.C);      // [C]
  const Tensor<2> rms = rms_norm(x, gain, set.eps);             // [T, C]
  const Tensor<2> layer = layer_norm(x, gain, bias, set.eps);   // [T, C]
  program.save("ids", ids), program.save("x", x), program.save("gain", gain);
  program.save("bias", bias), program.save("rms_norm", rms), program.save("layer_norm", layer);

  print_section("Real text, as it leaves the embedding");
  print_shapes({{"x", {ids.size(), set.C}, "embedded bytes, one a row"},
                {"gain, bias", {set.C}, "begin at 1 and 0"},
                {"mean square", {ids.size()}, "one number a row"},
                {"y", {ids.size(), set.C}, "the same rows at one size"}});
  fmt::print("\n");
  Table rows({"token", ">mean of x", ">rms of x", ">RMSNorm: rms", ">LayerNorm: mean", ">its rms"});
  for (std::size_t t = 0; t < std::min<std::size_t>(5, ids.size()); ++t)
    rows.add({byte_text(ids[t]), short_number(mean_of(row(x, t))), short_number(rms_of(row(x, t))),
              short_number(rms_of(row(rms, t))), short_number(mean_of(row(layer, t))),
              short_number(rms_of(row(layer, t)))});
  rows.print();
  fmt::print("\n");
  print_paragraph(fmt::format(
      "The table was drawn from N(0, 0.02²), so each row arrives with an rms near 0.02 and leaves "
      "near 1. What is missing is eps: beside a mean square of 0.0004, {:g} counts.",
      set.eps));
}

/// Largest difference that a change of the input makes to the output.
static double felt(const Tensor<2>& before, const Tensor<2>& after) {
  double most = 0;
  for (std::size_t i = 0; i < before.size(); ++i)
    most = std::max(most, std::abs(double(before.data()[i]) - after.data()[i]));
  return most;
}

static void show_what_is_forgotten(const Program& program) {
  Random random(program.seed());
  const Tensor<2> x = random.normal<2>({8, 64});                      // [T, C]
  const Tensor<2> shifted = x + 3, scaled = x * 10, turned = -1 * x;  // [T, C]
  const auto layer = [](const Tensor<2>& v) { return layer_norm(v, ones(64), zeros(64)); };
  const auto rms = [](const Tensor<2>& v) { return rms_norm(v, ones(64)); };

  print_section("What each forgets");
  Table table({"largest change, rows", ">shifted by 3", ">times 10", ">times -1", ""});
  table.add({"LayerNorm", fmt::format("{:.3f}", felt(layer(x), layer(shifted))),
             fmt::format("{:.3f}", felt(layer(x), layer(scaled))),
             fmt::format("{:.3f}", felt(layer(x), layer(turned))), "forgets both"});
  table.add({"RMSNorm", fmt::format("{:.3f}", felt(rms(x), rms(shifted))),
             fmt::format("{:.3f}", felt(rms(x), rms(scaled))),
             fmt::format("{:.3f}", felt(rms(x), rms(turned))), "forgets size"});
  table.print();
}

static void show_eps(float eps) {
  print_section("Where eps stands");
  Table table({"numbers near", ">eps inside the root", ">outside it", ">none"});
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
      "The rms of RMSNorm's result, eps {:g}. Small rows stay small, by design: what is mostly "
      "rounding is not blown up to full size. With eps outside, they are.",
      eps));
}

static void show_laziness(const Program& program) {
  Random random(program.seed());
  constexpr std::size_t T = 8, C = 64;
  const Tensor<2> x = random.normal<2>({T, C});
  std::size_t squares = 0;
  const auto square = [&](float value) { return ++squares, value * value; };

  // What not to write: `auto` keeps the recipe, and every element of y follows it anew.
  const auto lazy_mean = xt::mean(xt::make_lambda_xfunction(square, x), {1});
  const Tensor<2> slow = x / xt::sqrt(xt::view(lazy_mean, xt::all(), xt::newaxis()));
  const std::size_t lazily = std::exchange(squares, 0);

  const Tensor<1> mean = xt::mean(xt::make_lambda_xfunction(square, x), {1});
  const Tensor<2> fast = x / xt::sqrt(as_column(mean));

  print_section("The laziness trap, counted");
  Table table({"mean square of [8, 64] held as", ">numbers squared", "", "results"});
  table.add({"auto (lazy)", with_commas(lazily), "T·C·C", ""});
  table.add({"Tensor<1> (evaluated)", with_commas(squares), "T·C",
             felt(slow, fast) < 1e-5 ? "the same" : "not the same"});
  table.print();
}

/// What the timed block has, which is the most: seven matrices and the rows between them.
static double bytes_needed(double T, double C) {
  return sizeof(float) * (7 * C * C + 11 * T * C + 256 * (T + C));
}

int main(int argc, char** argv) {
  Settings set;
  Program program("02_normalization",
                  "Brings every token's vector to one size: LayerNorm against RMSNorm.");
  program.takes_text();
  program.size("tokens", set.T, "bytes of the text to use, and rows of the block timed, T");
  program.size("width", set.C, "channels of a token, C");
  program.number("eps", set.eps, "added to the mean square inside the root");

  return program.run(argc, argv, [&] {
    expect(set.eps >= 0, "--eps", "0 or more", set.eps);
    expect_memory(bytes_needed(double(set.T), double(set.C)), "--tokens and --width");
    show_one_row();
    show_text(program, set);
    show_what_is_forgotten(program);
    show_eps(set.eps);
    show_laziness(program);
    show_speed(set);
    show_share_of_a_block(set);
    fmt::print("\n");
    print_paragraph(
        "Next: ./learn run 03, how a token learns where it stands. The page: "
        "docs/02_normalization.md");
  });
}
