#include "15_serving/shows/show_speculation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "15_serving/engine/engine.hpp"
#include "15_serving/speculation/acceptance.hpp"
#include "program/print.hpp"

namespace t2t {

/// The model corrects a sentence, so most of its answer occurs in the prompt.
static const char* const prompt_text =
    "please correct : each text has an table of its pages in the order of its positions .";
static const char* const answer_text =
    "each text has a table of its pages in the order of its positions .";

/// A text whose tokens are words.
struct Words {
  std::vector<std::string> vocabulary = {};
  std::vector<int> ids = {};

  explicit Words(const std::string& text) {
    std::istringstream words(text);
    for (std::string word; words >> word;) {
      const auto found = std::ranges::find(vocabulary, word);
      ids.push_back(int(found - vocabulary.begin()));
      if (found == vocabulary.end()) vocabulary.push_back(word);
    }
  }
  std::string of(std::span<const int> some) const {
    std::string text;
    for (const int id : some) text += (text.empty() ? "" : " ") + vocabulary[std::size_t(id)];
    return text;
  }
};

/// A model runner that has memorized the text: after each position comes the text's next word.
static ModelRunner recites(const Words& words) {
  const EngineOptions options{.pages = 16, .page_size = 4, .sequences = 1, .budget = 32};
  return {options, words.vocabulary.size(), words.ids.size(),
          [&words](std::span<const Chunk> chunks, Matrix logits) {
            const Chunk& chunk = chunks.front();
            const std::size_t end = chunk.position + chunk.ids.size();
            for (std::size_t i = 0; i < chunk.wanted; ++i) {
              std::ranges::fill(logits.row(i), 0.0f);
              const std::size_t next = std::min(end - chunk.wanted + i + 1, words.ids.size() - 1);
              logits.row(i)[std::size_t(words.ids[next])] = 1;
            }
          }};
}

void show_drafts() {
  print_section("A sequence that repeats itself, with up to four drafts per step");
  const Words words(std::string(prompt_text) + " " + answer_text);
  Engine engine(recites(words));
  const std::size_t prompt = Words(prompt_text).ids.size();
  Request request{.prompt = {words.ids.begin(), words.ids.begin() + long(prompt)}};
  request.sampling.temperature = 0;
  request.drafter = lookup_drafter();
  engine.submit(request);
  Table table({">step", "drafted", ">accepted", ">tokens in all", "new tokens"});
  std::size_t tokens = prompt, steps = 0;
  while (!engine.idle()) {
    std::vector<int> said;
    for (const Event& event : engine.step())
      if (event.token) said.push_back(*event.token);
    tokens += said.size(), ++steps;
    const SequenceStep& part = engine.sequence_steps().front();
    const std::string accepted = part.drafted > 0 ? std::to_string(part.accepted) : "";
    table.add({std::to_string(steps), words.of(std::span(part.ids).last(part.drafted)), accepted,
               std::to_string(tokens), words.of(said)});
  }
  table.print();
  fmt::print("\n");
  print_paragraph(fmt::format(
      "The prompt is \"{}\". Each step looks for the sequence's last four words earlier in the "
      "sequence, then for the last three and the last two, and drafts what followed them there. "
      "Without drafts, the {} new words would take {} steps.",
      words.of(request.prompt), tokens - prompt, tokens - prompt));
}

/// The acceptance rate above which k drafts are faster than none.
static double break_even(std::size_t k, double cost) {
  double low = 0, high = 1;
  for (int halving = 0; halving < 40; ++halving) {
    const double middle = (low + high) / 2;
    (expected_speedup(middle, k, cost) < 1 ? low : high) = middle;
  }
  return high;
}

void show_speedup() {
  print_section("How many times as fast a sequence advances with k drafts");
  const std::vector<std::size_t> numbers = {1, 2, 4, 8};
  const std::vector<double> costs = {0.1, 0.4};
  std::vector<std::string> header = {">acceptance"};
  for (const double cost : costs)
    for (const std::size_t k : numbers)
      header.push_back(k == 1 ? fmt::format(">cost {}: k = 1", cost) : fmt::format(">{}", k));
  Table table(header);
  const auto add = [&](const std::string& name, const std::string& form, auto number) {
    std::vector<std::string> cells = {name};
    for (const double cost : costs)
      for (const std::size_t k : numbers)
        cells.push_back(fmt::format(fmt::runtime(form), number(k, cost)));
    table.add(cells);
  };
  for (const int percent : {0, 20, 40, 60, 80, 90, 100})
    add(fmt::format("{} %", percent), "{:.2f}",
        [&](std::size_t k, double cost) { return expected_speedup(percent / 100.0, k, cost); });
  add("break-even", "{:.0f} %",
      [](std::size_t k, double cost) { return 100 * break_even(k, cost); });
  table.print();
  fmt::print("\n");
  print_paragraph(
      "The acceptance rate is the probability that the model accepts a draft that it examines; "
      "those after a rejected one are not examined. The cost of making and reading a draft is "
      "given as a share of a pass over one token. Below 1, drafts make the sequence slower. The "
      "last row shows the acceptance rate above which k drafts are faster than none.");
}

}  // namespace t2t
