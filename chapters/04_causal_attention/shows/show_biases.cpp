#include "04_causal_attention/shows/show_biases.hpp"

#include <fmt/core.h>

#include <string>
#include <vector>

#include "03_rope/positions/positions.hpp"
#include "04_causal_attention/biases/biased_attention.hpp"
#include "program/print.hpp"
#include "program/program.hpp"

namespace t2t {

/// Over the last half of the queries, the mean weight of the key that stands `distance` before.
static double mean_weight(const Tensor<3>& weights, std::size_t h, std::size_t distance) {
  const std::size_t T = weights.shape(1);
  double sum = 0;
  for (std::size_t t = T / 2; t < T; ++t) sum += double(weights(h, t, t - distance));
  return sum / double(T - T / 2);
}

void show_biases(const Program& program) {
  constexpr std::size_t H = 8, T = 512, D = 64;
  Random random(program.seed());
  const Tensor<3> one_q = random.normal<3>({1, T, D}), one_k = random.normal<3>({1, T, D});
  // The same queries and keys in every head, so that only the biases differ.
  Tensor<3> q = empty(H, T, D), k = empty(H, T, D);
  for (std::size_t h = 0; h < H; ++h) {
    xt::view(q, h) = xt::view(one_q, 0);
    xt::view(k, h) = xt::view(one_k, 0);
  }
  // [caller]
  const Tensor<3> biases = alibi_biases(H, T, T);  // [H, T, S]
  const Tensor<3> weights = biased_attention_weights(q, k, biases, Mask::causal);
  // [/caller]
  const Tensor<3> plain =
      biased_attention_weights(one_q, one_k, xt::zeros<float>({1, int(T), int(T)}), Mask::causal);

  print_section("ALiBi: the mean weight of a key by its distance");
  const Tensor<1> slopes = alibi_slopes(H);
  std::vector<std::string> header = {">distance", ">no biases"};
  for (const std::size_t h : {0, 2, 4, 7})
    header.push_back(fmt::format(">head {}: slope 1/{:g}", h, 1 / slopes(h)));
  Table table(header);
  for (const std::size_t distance : {0, 1, 2, 4, 8, 16, 32, 64, 128, 255}) {
    std::vector<std::string> cells = {std::to_string(distance),
                                      fmt::format("{:.4f}", mean_weight(plain, 0, distance))};
    for (const std::size_t h : {0, 2, 4, 7})
      cells.push_back(fmt::format("{:.4f}", mean_weight(weights, h, distance)));
    table.add(cells);
  }
  table.print();
  fmt::print("\n");
  print_paragraph(
      "Random queries and keys, 512 tokens, causal; the means are over the last 256 queries. All "
      "heads have the same queries and keys here, so only the biases differ.");
}

}  // namespace t2t
