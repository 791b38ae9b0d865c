#include "09_language_model/shows/show_sequences.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "01_embedding/byte_text.hpp"
#include "program/print.hpp"

namespace t2t {

/// The logits of a sequence's last token, the sequence alone in its call.
static Tensor<1> last_logits(const Model& model, const std::vector<int>& ids) {
  ModelState state(model.config(), ids.size());
  Tensor<1> logits = empty(model.config().V);  // [V]
  forward(model, state, ids, row(logits));
  return logits;
}

/// The length of the difference of two rows of logits, over the length of the first.
static double moved(ConstRow want, ConstRow got) {
  double difference = 0, size = 0;
  for (std::size_t v = 0; v < want.size(); ++v) {
    difference += std::pow(double(want[v]) - double(got[v]), 2);
    size += std::pow(double(want[v]), 2);
  }
  return std::sqrt(difference / size);
}

/// Which keys each query of a sequence may see when it is padded in front to `most` tokens.
static void print_padding_masks(const std::vector<std::vector<int>>& sequences, std::size_t most) {
  for (std::size_t t = 0; t < most; ++t) {
    std::string line = "  ";
    for (const std::vector<int>& ids : sequences) {
      const std::size_t padding = most - ids.size();
      for (std::size_t s = 0; s < most; ++s) line += s >= padding && s <= t ? "█ " : "· ";
      line += "    ";
    }
    fmt::print("{}\n", line.substr(0, line.find_last_not_of(' ') + 1));
  }
}

void show_sequences(const Model& model, const std::vector<int>& ids) {
  if (ids.size() < 13) return;
  const std::vector<std::vector<int>> sequences = {{ids.begin(), ids.begin() + 3},
                                                   {ids.begin() + 3, ids.begin() + 9},
                                                   {ids.begin() + 9, ids.begin() + 13}};
  const std::size_t most = 6, all = 13, V = model.config().V;

  print_section("Several sequences at once");
  ModelState state(model.config(), most, {.sequences = sequences.size()});
  std::vector<MoreTokens> more;
  for (std::size_t i = 0; i < sequences.size(); ++i) more.push_back({i, sequences[i]});
  Tensor<2> logits = empty(sequences.size(), V);  // [sequences, V]
  forward(model, state, more, logits);

  Table table(
      {"sequence", "its tokens", ">rows of x", ">change", "", "padded in front", ">change"});
  std::size_t first = 0;
  for (std::size_t i = 0; i < sequences.size(); first += sequences[i].size(), ++i) {
    std::vector<int> padded(most - sequences[i].size(), 0);
    padded.insert(padded.end(), sequences[i].begin(), sequences[i].end());
    std::string tokens, with_padding;
    for (const int id : sequences[i]) tokens += byte_text(id) + " ";
    for (const int id : padded) with_padding += id == 0 ? "_ " : byte_text(id) + " ";
    const Tensor<1> alone = last_logits(model, sequences[i]), unmasked = last_logits(model, padded);
    table.add({std::to_string(i), tokens,
               fmt::format("{} to {}", first, first + sequences[i].size() - 1),
               fmt::format("{:.2f}", moved(row(alone), row(logits, i))), "", with_padding,
               fmt::format("{:.2f}", moved(row(alone), row(unmasked)))});
  }
  table.print();
  fmt::print("\n");
  print_padding_masks(sequences, most);
  fmt::print("\n");
  print_paragraph(fmt::format(
      "The rows of the sequences lie one after the other in x, [{}, C]. Padded to the longest "
      "sequence they would be [{}, {}, C]: {} rows, of which {}, or {:.0f} %, are padding. "
      "\"Change\" is the distance between the last token's logits and those of the sequence alone, "
      "as a share of their length. In the right half of the table nothing masks the padding, so "
      "attention reads it. The squares show, for each sequence, the mask that would hide it: row t "
      "is a query, column s a key.",
      all, sequences.size(), most, sequences.size() * most, sequences.size() * most - all,
      100.0 * double(sequences.size() * most - all) / double(sequences.size() * most)));
}

}  // namespace t2t
