#include "04_causal_attention/shows/figure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>
#include <vector>

#include "01_embedding/embedding.hpp"
#include "04_causal_attention/attention.hpp"
#include "figure/heat_cells.hpp"
#include "utf8_start.hpp"

namespace t2t {

static std::vector<std::string> first_words(const std::string& text, std::size_t most) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; words.size() < most && stream >> word;) words.push_back(word);
  return words;
}

/// [words, C]: the sum of a word's letters, divided by the root of their number.
static Tensor<2> vectors_of(const std::vector<std::string>& words, const Tensor<2>& table) {
  Tensor<2> x = empty(words.size(), table.shape(1));
  for (std::size_t t = 0; t < words.size(); ++t) {
    const Tensor<2> letters = embed(byte_ids(words[t]), table);  // [letters, C]
    xt::view(x, t) = xt::sum(letters, {0}) / std::sqrt(float(words[t].size()));
  }
  return x;
}

/// The words with the keys that each attends to most, for readers who cannot see the shades.
static std::string told(const Tensor<2>& weights, const std::vector<std::string>& words) {
  std::string text;
  for (std::size_t t = 0; t < words.size(); ++t) {
    std::string others;
    for (std::size_t s = 0; s < t; ++s)
      if (weights(t, s) >= 0.1f)
        others += fmt::format(", {} {:.0f} %", words[s], 100 * weights(t, s));
    text += fmt::format("{}: itself {:.0f} %{}. ", words[t], 100 * weights(t, t), others);
  }
  return text;
}

std::string figure_of_weights(const std::string& text, Random& random) {
  constexpr std::size_t C = 16, most = 9;
  constexpr double side = 40, left = 90, top = 46;
  std::vector<std::string> words = first_words(text, most);
  const Tensor<2> x = vectors_of(words, random.normal<2>({256, C}));  // [T, C]
  Tensor<2> weights = attention_weights(x, x, Mask::causal);          // [T, S]
  for (std::string& word : words) word = printable(word, 9);
  const double size = side * double(words.size());
  Figure figure(left + std::max(size + 70, 310.0), top + size + 40,
                fmt::format("Attention weights of {} words, in percent", words.size()),
                "Each row is a query, and each column is a key; a later word is not read. " +
                    told(weights, words) + "Weights below 10 % are left out here.");

  // A column's word stands above its first cell, in the part that the mask leaves empty.
  figure.text({left - 8, top - 26}, "queries", {Tone::quiet, Anchor::end, 13});
  figure.text({left + 4, top - 26}, "keys: each word stands above its column",
              {Tone::quiet, Anchor::start, 13});
  for (std::size_t t = 0; t < words.size(); ++t) {
    figure.text({left + side * double(t) + 4, top + side * double(t) - 8}, words[t]);
    for (std::size_t s = t + 1; s < words.size(); ++s)
      weights(t, s) = -std::numeric_limits<float>::infinity();
  }
  draw_heat_cells(figure, weights, {{left, top}, side, words, {}});
  figure.text({left, top + size + 24}, "each row adds up to 100 %; empty: masked",
              {.tone = Tone::quiet, .size = 13});
  return figure.svg();
}

}  // namespace t2t
