#include "23_latent/shows/show_forms.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "23_latent/absorbed.hpp"
#include "program/print.hpp"

namespace t2t {

/// "0.12, 0.88"
static std::string listed(ConstRow numbers) {
  std::string text;
  for (const float number : numbers)
    text += fmt::format("{}{:.4g}", text.empty() ? "" : ", ", number);
  return text;
}

void show_by_hand() {
  const LatentSettings settings{.C = 2, .H = 1, .N = 2, .R = 2, .Dv = 2, .K = 2};
  const Tensor<2> q = {{1, 1, 0, 2}}, rows = {{1, 0, 1, 0}, {0, 1, 0, 1}};
  const Tensor<2> w_kvb = {{1, 2}, {0, 1}, {2, 0}, {1, 1}};  // U, then Y
  const LatentHead head = expand_head(q, rows, w_kvb, settings, 0);
  const Tensor<2> absorbed = absorb_queries(q, w_kvb, settings);
  const ScoreRule rule = latent_rule(settings);
  const Tensor<2> plain = attention_weights(head.q, head.k, rule),
                  other = attention_weights(absorbed, rows, rule);
  const Tensor<2> z = {{other(0, 0), other(0, 1)}};  // the latents are unit vectors here

  print_section("By hand: one head, two cached positions");
  Table table({"", "plain", "absorbed"});
  table.add({"the query", listed(row(head.q, 0)), listed(row(absorbed, 0))});
  table.add({"key of position 0", listed(row(head.k, 0)), listed(row(rows, 0))});
  table.add({"key of position 1", listed(row(head.k, 1)), listed(row(rows, 1))});
  table.add({"weights", listed(row(plain, 0)), listed(row(other, 0))});
  table.add({"values", fmt::format("({}), ({})", listed(row(head.v, 0)), listed(row(head.v, 1))),
             "(1, 0), (0, 1)"});
  table.add({"mean of the values", listed(row(attend_latent(q, rows, w_kvb, settings), 0)),
             listed(row(z, 0))});
  table.add({"output", listed(row(attend_latent(q, rows, w_kvb, settings), 0)),
             listed(row(expand_outputs(z, w_kvb, settings), 0))});
  table.print();
  fmt::print("\n");
  print_paragraph(
      "In the plain form, the query is multiplied with expanded keys. In the absorbed form, U moves "
      "to the query, which is multiplied with the cached rows themselves, and Y multiplies the "
      "mean of the latents at the end.");
}

void show_equal(std::size_t seed) {
  print_section("Both forms at several sizes");
  Table table({">T", ">H", ">N", ">R", ">Dv", ">K", "difference below 5 millionths of the largest"});
  Random random(seed);
  const auto row_of = [&](std::size_t T, const LatentSettings& settings) {
    const auto [C, H, N, R, Dv, K, Q, m, pairing, eps] = settings;
    const Tensor<2> x = random.normal<2>({T, C});
    const LatentWeights weights = draw_latent_weights(settings, random);
    const RopeTable rope = rope_table(T, rope_frequencies(R));
    const Tensor<2> q = latent_queries(x, weights, settings, rope, 0),
                    rows = latent_rows(x, weights, settings, rope, 0),
                    plain = attend_latent(q, rows, weights.w_kvb, settings),
                    absorbed = attend_absorbed(q, rows, weights.w_kvb, settings);
    float largest = 0, difference = 0;
    for (std::size_t i = 0; i < plain.size(); ++i) {
      largest = std::max(largest, std::abs(plain.data()[i]));
      difference = std::max(difference, std::abs(plain.data()[i] - absorbed.data()[i]));
    }
    table.add({std::to_string(T), std::to_string(H), std::to_string(N), std::to_string(R),
               std::to_string(Dv), std::to_string(K), difference < 5e-6f * largest ? "yes" : "no"});
  };
  row_of(7, {.C = 13, .H = 3, .N = 5, .R = 4, .Dv = 6, .K = 9, .Q = 8});
  row_of(19, {.C = 24, .H = 5, .N = 7, .R = 6, .Dv = 3, .K = 11});
  row_of(64, {.C = 256, .H = 8, .N = 32, .R = 16, .Dv = 32, .K = 64, .Q = 96});
  table.print();
  fmt::print("\n");
  print_paragraph(
      "The forms multiply in another order, and their roundings differ.");
}

}  // namespace t2t
