#include "09_language_model/shows/show_encoder_decoder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "01_embedding/byte_text.hpp"
#include "01_embedding/embedding.hpp"
#include "09_language_model/encoder_decoder/encoder_decoder.hpp"
#include "program/print.hpp"

namespace t2t {

/// Lines of squares: the one in row t and column s is filled where another input token s changes
/// output row t.
static std::vector<std::string> reach(
    const std::vector<int>& inputs, const std::vector<int>& outputs,
    const std::function<Tensor<2>(const std::vector<int>& inputs)>& run) {
  const Tensor<2> before = run(inputs);
  std::vector<std::string> lines = {"  "};
  for (const int id : inputs) lines[0] += byte_text(id) + " ";
  for (const int id : outputs) lines.push_back(byte_text(id) + " ");
  for (std::size_t s = 0; s < inputs.size(); ++s) {
    std::vector<int> other = inputs;
    other[s] = '?';
    const Tensor<2> after = run(other);
    for (std::size_t t = 0; t < outputs.size(); ++t)
      lines[t + 1] += std::ranges::equal(row(before, t), row(after, t)) ? "· " : "█ ";
  }
  return lines;
}

/// The drawings beside one another, each under its title.
static void print_beside(const std::vector<std::string>& titles,
                         const std::vector<std::vector<std::string>>& drawings) {
  const auto padded = [](std::string text, std::size_t width) {
    return text + std::string(width - std::min(width, display_width(text)), ' ');
  };
  std::size_t lines = 0;
  for (const std::vector<std::string>& drawing : drawings) lines = std::max(lines, drawing.size());
  for (std::size_t at = 0; at <= lines; ++at) {
    std::string line = "  ";
    for (std::size_t i = 0; i < drawings.size(); ++i) {
      const bool there = at > 0 && at <= drawings[i].size();
      line += padded(at == 0 ? titles[i] : there ? drawings[i][at - 1] : "", 30);
    }
    fmt::print("{}\n", line.substr(0, line.find_last_not_of(' ') + 1));
  }
}

void show_encoder_decoder(std::size_t seed) {
  print_section("An encoder and a decoder: which token reaches which");
  Random random(seed);
  const EncoderDecoder model =
      draw_encoder_decoder({.C = 32, .H = 4, .F = 64, .L = 2, .V = 256}, random);
  const std::vector<int> source = byte_ids("source"), target = byte_ids("text");
  const Tensor<2> encoded = encode(source, model);  // [S, C]
  const auto encoder = reach(source, source, [&](const auto& ids) { return encode(ids, model); });
  const auto itself =
      reach(target, target, [&](const auto& ids) { return decode(ids, encoded, model); });
  const auto across = reach(
      source, target, [&](const auto& ids) { return decode(target, encode(ids, model), model); });
  print_beside({"source to encoder", "target to decoder", "source to decoder"},
               {encoder, itself, across});

  std::string answer;
  for (const int id : greedy_answer(source, 0, 0, 6, model)) answer += byte_text(id) + " ";
  fmt::print("\n");
  print_paragraph(fmt::format(
      "A square is filled where another token in its column changes what comes out in its row. A "
      "target token changes its own row and later ones; a source token changes every row. "
      "Untrained, the model answers \"source\" with these bytes, in hexadecimal if they are not "
      "letters: {}",
      answer));
}

}  // namespace t2t
