#include "14_mixture_of_experts/shows/show_choice.hpp"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "01_embedding/embedding.hpp"
#include "14_mixture_of_experts/experts.hpp"
#include "program/print.hpp"
#include "random.hpp"

namespace t2t {

static void show_order(const Routed& routed, std::size_t E, const std::string& text) {
  print_section("The same choices, expert by expert");
  Assignment assignment;
  assign(routed.experts, E, assignment);
  const std::size_t k = routed.weights.shape(1);
  Table table({">expert", ">rows", "tokens"});
  for (std::size_t e = 0; e < E; ++e) {
    std::string tokens;
    for (std::size_t r = assignment.begin[e]; r < assignment.begin[e + 1]; ++r)
      tokens += fmt::format("{}{} ({})", tokens.empty() ? "" : ", ", assignment.choices[r] / k,
                            text[assignment.choices[r] / k]);
    table.add({std::to_string(e), std::to_string(assignment.count(e)), tokens});
  }
  table.print();
  fmt::print("\n");
  print_paragraph(
      "The row kernel puts the rows of one expert side by side, so that each expert's weights are "
      "read once. An expert without tokens is not read at all.");
}

RoutedLetters route_letters(std::size_t seed) {
  RoutedLetters letters{.text = "experts", .routed = {}};
  const std::size_t C = 16;
  Random random(seed);
  const Tensor<2> table = random.normal<2>({256, C});
  const Tensor<2> router = random.normal<2>({letters.E, C}, 0.3f);
  const Tensor<2> x = embed(byte_ids(letters.text), table);  // [T, C]
  letters.routed = route(x, router, {letters.k});
  return letters;
}

void show_choice(const Program& program) {
  const auto [text, E, k, routed] = route_letters(program.seed());
  print_section("A router chooses 2 of 4 experts for each token");
  Table shown({"token", ">p of 0", ">1", ">2", ">3", "chosen", ">weights"});
  for (std::size_t t = 0; t < text.size(); ++t) {
    std::vector<std::string> cells = {fmt::format("{} {}", t, text[t])};
    for (std::size_t e = 0; e < E; ++e) cells.push_back(fmt::format("{:.3f}", routed.p(t, e)));
    cells.push_back(fmt::format("{}, {}", routed.experts[t * k], routed.experts[t * k + 1]));
    cells.push_back(fmt::format("{:.3f}, {:.3f}", routed.weights(t, 0), routed.weights(t, 1)));
    shown.add(cells);
  }
  shown.print();
  fmt::print("\n");
  print_paragraph(
      "p is the softmax of a token's four scores. The weights are the p of the two chosen experts, "
      "divided by their sum. Equal letters have equal vectors here, and so get equal experts.");
  show_order(routed, E, text);
  program.save("p", routed.p);
  program.save("weights", routed.weights);
}

}  // namespace t2t
