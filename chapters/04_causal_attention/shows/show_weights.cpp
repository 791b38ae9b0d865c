#include "04_causal_attention/shows/show_weights.hpp"

#include <fmt/core.h>

#include <string>
#include <vector>

#include "04_causal_attention/attention.hpp"
#include "04_causal_attention/softmax.hpp"
#include "program/print.hpp"
#include "program/program.hpp"

namespace t2t {

void show_one_head(const Program& program, const Tensor<2>& x,
                   const std::vector<std::string>& labels) {
  const Tensor<2> scores = attention_scores(x, x, Mask::causal);  // [T, S]
  const Tensor<2> weights = softmax(scores);                      // [T, S]
  program.save("scores", scores);
  program.save("weights", weights);

  print_section("Scores: how similar each token is to those before it");
  print_heat_map(scores, {labels, labels, true});
  fmt::print("\n");
  print_paragraph(
      "Each row is a query, and each column is a key. The scores fall into five ranges of equal "
      "width; the last line shows the middle of each, and a blank is near 0. A dot is -infinity: "
      "a token may not read a later one. Random vectors are not quite orthogonal, hence the marks "
      "between different letters.");
  print_section("Weights: softmax of each row");
  print_heat_map(weights, {labels, labels});
  fmt::print("\n");
  print_paragraph(
      "Here each token is its own query and key, so it is most similar to itself and to equal "
      "letters: where a letter comes a second time, its query attends to both places.");
}

void show_masks() {
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
      for (const float added : row(mask, t)) cells += added == 0 ? "██" : "··";
      line += cells + std::string(17 - 2 * mask.shape(1), ' ');
    }
    fmt::print("{}\n", line.substr(0, line.find_last_not_of(' ') + 1));
  }
  fmt::print("\n");
  print_paragraph(
      "In cross attention the keys come from another sequence, here of 7 tokens, all of them "
      "known.");
}

}  // namespace t2t
