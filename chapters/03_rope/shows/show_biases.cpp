#include "03_rope/shows/show_biases.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <exception>
#include <string>

#include "03_rope/positions/positions.hpp"
#include "program/print.hpp"

namespace t2t {

static void show_learned_table() {
  print_section("A learned table ends");
  Random random(1);
  const Tensor<2> table = learned_positions(1024, 64, random);  // [S, C]
  const Tensor<2> x = xt::zeros<float>({1, 64});                // one token
  Table rows({">position", "first elements of what is added"});
  for (const std::size_t position : {0, 1, 1023, 1024}) {
    std::string added;
    try {
      const Tensor<2> y = with_positions(x, table, position);
      for (std::size_t c = 0; c < 5; ++c) added += fmt::format("{:>8.4f}", y(0, c));
    } catch (const std::exception& error) {
      added = fmt::format(" refused: {}", error.what());
    }
    rows.add({std::to_string(position), added});
  }
  rows.print();
}

static void show_slopes() {
  print_section("ALiBi's slopes");
  Table table({">heads", "slopes"});
  for (const std::size_t H : {4, 6}) {
    std::string slopes;
    for (const float slope : alibi_slopes(H)) slopes += fmt::format("1/{:<7.4g}", 1 / slope);
    table.add({std::to_string(H), slopes});
  }
  table.print();
}

/// What the query at the last position adds to its scores in head h, by distance: [S].
static Tensor<1> by_distance(const Tensor<3>& biases,  // [H, 1, S]
                             std::size_t h) {
  const std::size_t S = biases.shape(2);
  Tensor<1> line = empty(S);
  for (std::size_t distance = 0; distance < S; ++distance)
    line(distance) = biases(h, 0, S - 1 - distance);
  return line;
}

static void show_added_to_scores() {
  print_section("What is added to a score, by distance");
  const std::size_t S = 64, D = 64, K = 16;
  Random random(1);
  const Tensor<2> numbers = random.normal<2>({32, 4});     // [buckets, H]
  const Tensor<2> vectors = random.normal<2>({K + 1, D});  // [K + 1, D]
  const Tensor<2> q = random.normal<2>({1, 2 * D});        // [T, H·D]
  const Tensor<3> alibi = alibi_biases(4, 1, S), t5 = t5_biases(numbers, 1, S),
                  shaw = shaw_biases(q, vectors, S);  // [H, 1, S] each

  Table table(
      {"scheme", ">head", ">lowest", ">highest", "distances 0 to 63, each row on its own scale"});
  const auto add = [&](const char* name, const Tensor<3>& biases, std::size_t h) {
    const Tensor<1> line = by_distance(biases, h);
    const auto [low, high] = std::ranges::minmax(row(line));
    table.add({name, std::to_string(h), fmt::format("{:.2f}", low),
               fmt::format("{:.2f}", high + 0.0f), sparkline(row(line))});  // no "-0.00"
  };
  add("ALiBi", alibi, 0), add("ALiBi", alibi, 3);
  add("T5", t5, 0), add("T5", t5, 1);
  add("Shaw", shaw, 0), add("Shaw", shaw, 1);
  table.print();
}

void show_biases() {
  show_learned_table();
  show_slopes();
  show_added_to_scores();
}

}  // namespace t2t
