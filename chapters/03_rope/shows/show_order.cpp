#include "03_rope/shows/show_order.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <sstream>
#include <utility>

#include "03_rope/shows/one_head.hpp"
#include "program/print.hpp"
#include "program/program.hpp"
#include "statistics.hpp"

namespace t2t {

static Tensor<2> backwards(const Tensor<2>& x) {
  Tensor<2> y = Tensor<2>::from_shape(x.shape());
  for (std::size_t t = 0; t < x.shape(0); ++t)
    std::ranges::copy(row(x, x.shape(0) - 1 - t), row(y, t).begin());
  return y;
}

static float distance(const Tensor<2>& x, const Tensor<2>& y) {
  const Tensor<2> difference = x - y;
  return float(root_mean_square(difference));
}

/// The first seven words of a text.
static std::vector<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; words.size() < 7 && stream >> word;) words.push_back(word);
  return words;
}

void show_order(const Program& program, Random& random) {
  const std::size_t C = 64;
  const std::vector<std::string> words = words_of(program.text(200));
  Tensor<2> x = empty(words.size(), C);  // [T, C]: a word has the same vector at every position
  for (std::size_t t = 0; t < words.size(); ++t) {
    const std::size_t first = std::size_t(std::ranges::find(words, words[t]) - words.begin());
    const Tensor<2> fresh = random.normal<2>({1, C});
    std::ranges::copy(first < t ? row(std::as_const(x), first) : row(fresh, 0), row(x, t).begin());
  }
  const OneHead head(C, random);

  print_section("Two orders of the same words");
  print_paragraph(
      "The words go through one attention layer without a mask, in their order, then in reverse. "
      "The table shows how much each word's output changes (root mean square). What matters is "
      "only whether the change is 0:");
  fmt::print("\n");
  std::vector<Tensor<2>> moves;
  for (const Positions way :
       {Positions::none, Positions::sinusoids_added, Positions::table_added, Positions::qk_rotated})
    moves.push_back(backwards(head.run(backwards(x), way)) - head.run(x, way));
  Table table({"word", ">no positions", ">sinusoids added", ">learned added", ">q and k rotated"});
  for (std::size_t t = 0; t < words.size(); ++t) {
    std::vector<std::string> cells = {visible(words[t])};
    for (const Tensor<2>& move : moves)
      cells.push_back(fmt::format("{:.3f}", root_mean_square(row(move, t))));
    table.add(cells);
  }
  table.print();
  fmt::print("\n");
  print_paragraph(
      "Without positions the outputs are the same vectors in another order. (The learned table is "
      "not trained yet: random rows, half as large as the words' vectors.)");

  print_section("The same words, 1000 positions later");
  Table later({"positions", ">change of outputs", ""});
  const auto add = [&](const char* name, Positions way, const char* why) {
    later.add(
        {name, fmt::format("{:.3f}", distance(head.run(x, way, 1000), head.run(x, way))), why});
  };
  add("sinusoids added", Positions::sinusoids_added, "each position has its own pattern");
  add("q and k rotated", Positions::qk_rotated, "no distance changed");
  add("q, k and v rotated", Positions::qkv_rotated, "outputs depend on the text's position");
  later.print();
  program.save("words", x);
  program.save("words_wq", head.wq);
  program.save("words_wk", head.wk);
  program.save("words_wv", head.wv);
}

}  // namespace t2t
