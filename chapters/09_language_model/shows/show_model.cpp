#include "09_language_model/shows/show_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>

#include "01_embedding/byte_text.hpp"
#include "01_embedding/embedding.hpp"
#include "04_causal_attention/fast/softmax_rows.hpp"
#include "09_language_model/generate.hpp"
#include "09_language_model/loss.hpp"
#include "program/print.hpp"

namespace t2t {

void show_flow(const Program& program, const Model& model, const std::vector<int>& ids) {
  const std::size_t top = model.config().L - 1;
  const std::map<std::pair<Part, std::size_t>, const char*> what = {
      {{Part::embedding, 0}, "each token's row of the embedding"},
      {{Part::heads, 0}, "block 0: what attention's heads return"},
      {{Part::x_plus_attention, 0}, "x, with attention's result added"},
      {{Part::hidden, 0}, "the middle of its feed-forward network"},
      {{Part::x_plus_feed_forward, 0}, "x, with the network's result added"},
      {{Part::x_plus_feed_forward, top}, "x after the last block"},
      {{Part::final_norm, 0}, "x of the last token, normalized"},
      {{Part::logits, 0}, "a score for each of V tokens"}};

  print_section("What flows through the model");
  std::vector<ShapeRow> rows = {{"ids", {ids.size()}, "the text's first bytes, one token each"}};
  ModelState state(model.config(), ids.size());
  Tensor<1> logits = empty(model.config().V);  // [V]
  forward(model, state, ids, row(logits), [&](Part part, std::size_t layer, ConstMatrix value) {
    std::string name = trace_name(part, layer);
    if (const auto found = what.find({part, layer}); found != what.end())
      rows.push_back({name, {value.rows, value.cols}, found->second});
    std::ranges::replace(name, ' ', '_');
    program.save(name, copy_of(value));
  });
  print_shapes(rows);
  program.save("ids", ids);
  program.save("embedding_table", model.weights().embedding.floats());
  program.save("head", model.head().floats());
}

/// Forbids all ids but those of bytes that a terminal can show. (No byte has an id above 255.)
static void only_printable(Row logits) {
  for (std::size_t v = 0; v < logits.size(); ++v)
    if (v < ' ' || v > '~') logits[v] = -std::numeric_limits<float>::infinity();
}

void show_speech(const Model& model, const std::vector<int>& prompt, std::size_t tokens,
                 const Sampling& flags, std::size_t seed) {
  print_section("What the untrained model writes");
  std::string text;
  for (const int id : prompt) text += char(id);
  print_paragraph("Prompt: " + visible(text));
  fmt::print("\n");

  ModelState state(model.config(), std::min(model.config().T_max, prompt.size() + tokens));
  Table table({"sampling", "new tokens", "ended by"});
  const auto speak = [&](const std::string& name, const Sampling& sampling) {
    Random random(seed);
    std::string said;
    reset(state);
    const Ending ending = generate(model, state, prompt,
                                   {.most = tokens, .sampling = sampling, .filter = only_printable},
                                   random, [&](int id) {
                                     said += char(id);
                                     return true;
                                   });
    // Cut to what a line has room for.
    const std::size_t room = std::max<std::size_t>(terminal_width(), 80) - 40;
    if (said.size() > room) said = said.substr(0, room - 1) + "…";
    table.add({name, visible(said),
               ending == Ending::most_tokens ? "limit" : std::string(ending_text(ending))});
  };
  speak("greedy", {.temperature = 0});
  speak("temperature 0.1", {.temperature = 0.1f});
  speak("temperature 1", {});
  speak("as the flags set it", flags);
  table.print();
  fmt::print("\n");
  print_paragraph(
      "The weights are random, so at temperature 1 all characters are about equally likely. Greedy "
      "text soon repeats itself, and so does the greedy text of many trained models (Holtzman et "
      "al. 2020). Chapter 10 loads trained weights into this same code.");
}

void show_loss(const Model& model, const std::vector<int>& ids) {
  if (ids.size() < 2) return;
  print_section("Loss before any training");
  Tensor<2> logits = empty(ids.size(), model.config().V);  // [T, V]
  ModelState state(model.config(), ids.size());
  forward_all(model, state, ids, logits);
  const double loss = next_token_loss(logits, ids), V = double(model.config().V);
  const double variance = double(model.config().block.C) * 0.02 * 0.02;

  Table table({"", ">nats", ">perplexity"});
  const auto add = [&](const std::string& name, double nats) {
    const double perplexity = std::exp(nats);
    table.add({name, fmt::format("{:.2f}", nats),
               with_commas(std::size_t(100 * std::llround(perplexity / 100)))});
  };
  add(fmt::format("measured on {} bytes of text", ids.size()), loss);
  add("ln V: all tokens equally likely", std::log(V));
  add("ln V + s²/2, s = 0.02·√C the spread of the logits", std::log(V) + variance / 2);
  table.print();
  fmt::print("\n");
  print_paragraph(
      "Look for a mistake when a new model's loss is far above these, such as a head whose weights "
      "are too large. The measured loss differs by about 0.1 between seeds: a frequent byte counts "
      "often, and its row of the head is one random draw. Perplexities are rounded to hundreds.");
}

/// The probabilities of these logits after a filter, as a column of the table.
template <class Filter>
static std::vector<std::string> left_by(Tensor<1> logits, Filter filter) {
  filter(row(logits));
  softmax_row(row(logits));
  std::vector<std::string> column;
  for (const float p : logits) column.push_back(p > 0 ? fmt::format("{:.0f} %", 100 * p) : "·");
  return column;
}

void show_filters() {
  print_section("What each filter keeps");
  const std::vector<std::string> words = {"the", "a", "his", "her", "this", "no", "seven", "of"};
  const Tensor<1> p = {0.40f, 0.22f, 0.14f, 0.09f, 0.06f, 0.05f, 0.03f, 0.01f};
  const Tensor<1> logits = xt::log(p);
  SamplingScratch scratch(p.size());
  const std::vector<std::vector<std::string>> columns = {
      left_by(logits, [&](Row) {}),
      left_by(logits, [&](Row x) { apply_temperature(x, 0.5f); }),
      left_by(logits, [&](Row x) { apply_temperature(x, 2); }),
      left_by(logits, [&](Row x) { keep_top_k(x, 3, scratch); }),
      left_by(logits, [&](Row x) { keep_top_p(x, 0.8f, scratch); }),
      left_by(logits, [&](Row x) { keep_min_p(x, 0.2f); })};
  Table table(
      {"token", ">probability", ">temp 0.5", ">temp 2", ">top-k 3", ">top-p 0.8", ">min-p 0.2"});
  for (std::size_t v = 0; v < words.size(); ++v) {
    std::vector<std::string> cells = {words[v]};
    for (const std::vector<std::string>& column : columns) cells.push_back(column[v]);
    table.add(cells);
  }
  table.print();
  fmt::print("\n");
  print_paragraph(
      "Temp is the temperature; a dot is a dropped token. The first three have 76 % together, less "
      "than 0.8, so top-p keeps the fourth too. Min-p 0.2 drops every token with less than a fifth "
      "of the likeliest token's 40 %.");
}

}  // namespace t2t
