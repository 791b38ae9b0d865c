// Shows what attention loses without positions, what RoPE gives it, what a wrong pairing does, what
// other schemes add to scores, and what happens beyond the trained length.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "01_embedding/embedding.hpp"
#include "03_rope/fast/rope_rows.hpp"
#include "03_rope/positions/positions.hpp"
#include "03_rope/shows/figure.hpp"
#include "03_rope/shows/show_biases.hpp"
#include "03_rope/shows/show_order.hpp"
#include "03_rope/shows/show_scaling.hpp"
#include "files/files.hpp"
#include "linalg.hpp"
#include "memory.hpp"
#include "program/print.hpp"
#include "program/program.hpp"
#include "shapes.hpp"
#include "statistics.hpp"
#include "timing/measure.hpp"

using namespace t2t;

namespace {

/// A curve of cos(m·f) at 16 positions m from start on, `step` apart. It is empty when the angle
/// grows by more than half a circle between two of them, since such a curve would look too slow.
std::string cosines(double f, std::size_t start, std::size_t step) {
  const std::size_t shown = 16;
  if (double(step) * f > std::numbers::pi) return "";
  Tensor<1> values = empty(shown + 2);
  for (std::size_t n = 0; n < shown; ++n) values(n) = float(std::cos(double(start + n * step) * f));
  values(shown) = -1, values(shown + 1) = 1;           // so that each curve has the same scale
  return sparkline(row(values)).substr(0, shown * 3);  // 3 bytes per character
}

void show_pairs(std::size_t D, float theta, std::size_t start) {
  print_section("Each pair rotates at its own speed");
  const Frequencies frequencies = rope_frequencies(D, theta);  // [D/2]
  const std::size_t pairs = D / 2, shown = std::min<std::size_t>(6, pairs);
  print_paragraph(fmt::format(
      "Each curve shows the cosine of a pair's angle at 16 positions from {} on: consecutive "
      "positions, then every 30th, then every 1000th. A curve is left out if its pair rotates more "
      "than half a turn between two of these positions, because it would mislead:",
      start));
  fmt::print("\n");
  Table table({">pair", ">degrees/position", ">positions/turn", "each position", "every 30th",
               "every 1000th"});
  for (std::size_t row = 0; row < shown; ++row) {
    const std::size_t i = shown > 1 ? row * (pairs - 1) / (shown - 1) : 0;
    const double degrees = frequencies[i] * 180 / std::numbers::pi;
    table.add({std::to_string(i), fmt::format("{:.4f}", degrees),
               fmt::format("{:.1f}", 360 / degrees), cosines(frequencies[i], start, 1),
               cosines(frequencies[i], start, 30), cosines(frequencies[i], start, 1000)});
  }
  table.print();
  fmt::print("\n");
  print_paragraph(
      "Fast pairs distinguish neighbouring positions, but soon repeat. Slow pairs hardly change "
      "from one position to the next; they distinguish distant ones.");
}

void show_distances(const Program& program, std::size_t D, float theta, Random& random) {
  print_section("A score depends only on the distance");
  const Tensor<2> q = random.normal<2>({1, D}), k = random.normal<2>({1, D});
  const Tensor<2> sinusoids = sinusoidal_positions(1100, D);
  const RopeTable rotations = rope_table(1100, rope_frequencies(D, theta));
  const auto score = [&](std::size_t m, std::size_t n, bool rotated) {
    double sum = 0;
    const Tensor<2> qm = rope(q, D, rotations, m, Pairing::halves),
                    kn = rope(k, D, rotations, n, Pairing::halves);
    for (std::size_t d = 0; d < D; ++d)
      sum += rotated ? double(qm(0, d)) * kn(0, d)
                     : double(q(0, d) + sinusoids(m, d)) * (k(0, d) + sinusoids(n, d));
    return fmt::format("{:.2f}", sum / std::sqrt(double(D)) + 1e-9);  // no "-0.00"
  };
  Table table({">distance", ">rotated: key at 0", ">at 10", ">at 1000", ">sinusoids: key at 0",
               ">at 10", ">at 1000"});
  for (const std::size_t distance : {0, 1, 5, 20, 80}) {
    std::vector<std::string> cells = {std::to_string(distance)};
    for (const bool rotated : {true, false})
      for (const std::size_t n : {0, 10, 1000}) cells.push_back(score(n + distance, n, rotated));
    table.add(cells);
  }
  table.print();
  fmt::print("\n");
  print_paragraph(
      "The scores of one query and one key. If both are rotated, the key's position changes "
      "nothing. With sinusoids, the same distance gives a different score at each position.");
  program.save("q", q);
  program.save("k", k);
}

/// The scores of each query with each key, both rotated: [H, T, T].
Tensor<3> all_scores(Tensor<2> q, Tensor<2> k, std::size_t D, const RopeTable& table,
                     std::size_t start, Pairing pairing) {
  const std::size_t T = q.shape(0), H = q.shape(1) / D;
  rope_rows(q, D, table, start, pairing);
  rope_rows(k, D, table, start, pairing);
  Tensor<3> scores = empty(H, T, T);
  for (std::size_t h = 0; h < H; ++h)
    matmul_bt(Matrix(q).head(h, D), Matrix(k).head(h, D), matrix(scores, h),
              1 / std::sqrt(float(D)));
  return scores;
}

/// The rms, root mean square, over heads of row t, keys 0 … t.
float rms_at(const Tensor<3>& scores, std::size_t t) {
  std::vector<float> seen;
  for (std::size_t h = 0; h < scores.shape(0); ++h)
    for (std::size_t s = 0; s <= t; ++s) seen.push_back(scores(h, t, s));
  return float(root_mean_square(seen));
}

struct Sizes {
  std::size_t T = 64, H = 4, D = 64, start = 0;
  float theta = 10000;
};

/// Four sets of scores, two weights and their permuted copies, rows of q and k, and the table.
double bytes_needed(double T, double H, double D, double start) {
  const double C = H * D;
  return sizeof(float) * (4 * H * T * T + 4 * C * C + 10 * T * C + (start + T) * D);
}

void show_wrong_pairing(const Program& program, const Sizes& sizes, Random& random) {
  const auto& [T, H, D, start, theta] = sizes;
  const std::vector<int> ids = byte_ids(program.text(T));
  const std::size_t tokens = ids.size(), C = H * D;
  Tensor<2> x = empty(tokens, C);  // [T, C]
  embed_rows(ids, random.normal<2>({256, C}), x);
  const Tensor<2> wq = random.normal<2>({C, C}, 1 / std::sqrt(float(C)));
  const Tensor<2> wk = random.normal<2>({C, C}, 1 / std::sqrt(float(C)));

  // [caller]
  const RopeTable table = rope_table(start + tokens, rope_frequencies(D, theta));
  const Tensor<2> q = matmul_bt(x, wq), k = matmul_bt(x, wk);                  // [T, H·D]
  const Tensor<3> right = all_scores(q, k, D, table, start, Pairing::halves);  // [H, T, T]
  // [/caller]
  const Tensor<3> wrong = all_scores(q, k, D, table, start, Pairing::neighbours) - right;
  const Tensor<3> mended = all_scores(matmul_bt(x, permute_halves_to_neighbours(wq, D)),
                                      matmul_bt(x, permute_halves_to_neighbours(wk, D)), D, table,
                                      start, Pairing::neighbours) -
                           right;

  print_section("The wrong pairing, position by position");
  print_paragraph(
      "The weights expect halves, but q and k are rotated as neighbours. For the token at each "
      "position, the table shows the root mean square (rms) of its scores and of their error, over "
      "keys and heads:");
  fmt::print("\n");
  Table rows(
      {">position", ">rms of scores", ">of error", ">error / scores", "", ">of error, permuted"});
  for (std::size_t t : {0, 1, 2, 5, 10, 20, 50, 100, 1000})
    if (t < tokens) {
      const float rms = rms_at(right, t), error = rms_at(wrong, t);
      rows.add({std::to_string(start + t), fmt::format("{:.2f}", rms), fmt::format("{:.2f}", error),
                fmt::format("{:.2f}", error / rms), bar(error / rms / 1.6, 16),
                fmt::format("{:.2f}", rms_at(mended, t))});
    }
  rows.print();
  fmt::print("\n");
  print_paragraph(
      "A test that looks only at the first token would pass; the error grows with the keys' "
      "distance. After the rows of both matrices are permuted, the error is gone.");
  program.save("x", x);
  program.save("wq", wq);
  program.save("wk", wk);
  program.save("scores", right);

  print_section("What flowed through");
  print_shapes({{"ids", {tokens}, "bytes of the text"},
                {"x", {tokens, C}, "their embeddings"},
                {"q, k", {tokens, C}, "projections of x, H heads of width D side by side"},
                {"cos, sin", {start + tokens, D / 2}, "of the angle of each position and pair"},
                {"q, k rotated", {tokens, C}, "in place, all heads by the same angles"},
                {"scores", {H, tokens, tokens}, "of each query with each key, / √D"}});
}

void show_speed(std::size_t D, float theta) {
  print_section("Speed");
  const std::size_t T = 8192, C = std::max<std::size_t>(2048 / D, 1) * D;
  Tensor<2> x = xt::ones<float>({T, C});
  const RopeTable table = rope_table(T, rope_frequencies(D, theta));
  const double bytes = 2.0 * double(x.size() * sizeof(float));
  for (const Pairing pairing : {Pairing::neighbours, Pairing::halves}) {
    const double seconds = median_seconds([&] { rope_rows(x, D, table, 0, pairing); });
    const char* name = pairing == Pairing::halves ? "halves" : "neighbours";
    print_roofline_bytes(fmt::format("{} [{}, {}]", name, T, C), seconds, bytes, update_bandwidth(),
                         "updating memory in place");
  }
}

}  // namespace

int main(int argc, char** argv) {
  Sizes sizes;
  Program program(
      "03_rope",
      "Shows what attention loses without positions, and what rotating q and k gives it.");
  program.takes_text();
  program.size("tokens", sizes.T, "tokens, T: the first bytes of the text");
  program.size("heads", sizes.H, "heads of q and k, H");
  program.size("head-dim", sizes.D, "width of a head, D, an even number");
  program.number("theta", sizes.theta, "base of the frequencies; 500000 in Llama 3");
  float start = 0;
  program.number("start", start, "position of the first token");
  std::string svg;
  program.output("svg", svg, "write the chapter's figure to this file and stop");
  program.has_solutions(solutions);
  return program.run(argc, argv, [&] {
    expect(start >= 0 && start <= 65536 && start == std::floor(start), "--start",
           "an integer from 0 to 65536", start);
    sizes.start = std::size_t(start);
    const bool even = sizes.D % 2 == 0 && sizes.D >= 4 && sizes.D <= 1024;
    expect(even, "--head-dim", "an even number from 4 to 1024", sizes.D);
    expect(sizes.T <= 2048, "--tokens", "at most 2048", sizes.T);
    expect(sizes.H <= 256, "--heads", "at most 256", sizes.H);
    const bool held = sizes.theta > 1 && sizes.theta <= 1e37f;  // scaled ones are up to 16 times it
    expect(held, "--theta", "a number above 1 and at most 1e+37", sizes.theta);
    if (!svg.empty())
      return write_file(svg, figure_of_angles(rope_frequencies(sizes.D, sizes.theta)));
    expect_memory(
        bytes_needed(double(sizes.T), double(sizes.H), double(sizes.D), double(sizes.start)),
        "--tokens, --heads and --head-dim");
    Random random(program.seed());
    show_order(program, random);
    show_pairs(sizes.D, sizes.theta, sizes.start);
    show_distances(program, sizes.D, sizes.theta, random);
    show_wrong_pairing(program, sizes, random);
    show_beyond(sizes.D, sizes.theta, random);
    show_biases();
    show_speed(sizes.D, sizes.theta);
    fmt::print("\n");
    print_paragraph("Next: ./learn run 04, attention. The page: docs/03_rope.md");
  });
}
