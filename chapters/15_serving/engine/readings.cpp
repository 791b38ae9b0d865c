// What texts read in a step, and how their answers go on afterwards, with drafts and without.
#include <fmt/core.h>

#include <algorithm>
#include <stdexcept>

#include "15_serving/engine/engine.hpp"
#include "shapes.hpp"

namespace t2t {

/// Before how many of its prompt's tokens a text gets logits to hand on, if it reads so many
/// tokens.
static std::size_t to_score(const Engine::Text& text, std::size_t tokens) {
  if (!text.is_scoring()) return 0;
  const std::size_t end = std::min(text.computed + tokens, text.request.prompt.size() - 1);
  return end - std::min(std::max(text.scored, text.computed), end);
}

/// All texts get what the plan gives them. Only then drafts get what is left of budget and pages.
void Engine::plan_readings() {
  readings_.clear();
  std::size_t budget = reader_.sizes.budget;
  for (const auto& [id, tokens] : plan_.parts) {
    Text& text = text_of(id);
    make_room(text, tokens);
    const std::span<const int> ids = std::span(text.tokens).subspan(text.computed, tokens);
    const bool is_last = text.computed + tokens == text.tokens.size();
    const std::size_t scored = to_score(text, tokens);
    readings_.push_back({id, {ids.begin(), ids.end()}, scored + is_last, scored});
    budget -= tokens;
  }
  for (Reading& reading : readings_) {
    Text& text = text_of(reading.id);
    if (text.tokens.size() - text.computed > 1) continue;  // a prompt
    add_drafts(text, reading, budget);
    budget -= reading.drafted;
  }
}

/// How many drafts a text has room for: in its pages and those that are left, and before its end,
/// as one token more is chosen than is accepted.
std::size_t Engine::drafts_with_room(const Text& text) const {
  const std::size_t pages = text.table.size() + pool_.free() + tree_.spare();
  const std::size_t end = std::min(most_tokens(), text.request.prompt.size() + text.request.most);
  return std::min(pages * reader_.sizes.page, end - 1) - text.tokens.size();
}

/// Asks for drafts of an answer, and takes pages for them.
void Engine::add_drafts(Text& text, Reading& reading, std::size_t budget) {
  if (!text.request.draft || text.request.most == 0) return;
  const std::size_t most = std::min({text.request.drafts, budget, drafts_with_room(text)});
  if (most == 0) return;
  try {
    const std::vector<int> drafts = text.request.draft(text.tokens, most);
    expect(drafts.size() <= most, "drafts", fmt::format("at most {}", most), double(drafts.size()));
    for (const int id : drafts) expect_token("a draft", id);
    reading.ids.insert(reading.ids.end(), drafts.begin(), drafts.end());
    reading.drafted = drafts.size(), reading.wanted = drafts.size() + 1;
  } catch (const std::exception& thrown) {
    reading.error = error_of(thrown);
  }
  make_room(text, reading.ids.size());
}

/// Hands on the first rows, the logits before the next tokens of the prompt, and returns the
/// others.
Matrix Engine::hand_on(Text& text, Reading& reading, Matrix logits) {
  try {
    for (std::size_t i = 0; i < reading.scored; ++i) {
      ++text.scored;
      if (prompt_scored) prompt_scored(text.id, text.request.prompt[text.scored], logits.row(i));
    }
  } catch (const std::exception& thrown) {
    reading.error = error_of(thrown);
  }
  return logits.rows_from(reading.scored, logits.rows - reading.scored);
}

/// Chooses a text's next tokens from the logits [wanted, V], row by row, for as long as a draft is
/// the token that is chosen. The draft's keys and values are right then.
void Engine::answer(Text& text, Reading& reading, Matrix logits, std::vector<Event>& events) {
  logits = hand_on(text, reading, logits);
  text.computed += reading.ids.size() - reading.drafted;
  if (!reading.error.empty()) {
    events.push_back({text.id, {}, {}, reading.error});
    return;
  }
  const std::span<const int> drafts = std::span(reading.ids).last(reading.drafted);
  for (std::size_t i = 0; i < logits.rows; ++i) {
    const Event& event = events.emplace_back(choose(text, logits.row(i)));
    if (event.ending || !event.error.empty()) return;
    if (i == drafts.size() || event.token != drafts[i]) return;
    ++reading.accepted, ++text.computed;
  }
}

/// Gives back the pages after the computed tokens, which only drafts needed that were not accepted.
/// What these wrote into the last page is written over later.
void Engine::rewind(Text& text) {
  const std::size_t needed = reader_.sizes.pages_for(text.computed);
  for (; text.table.size() > needed; text.table.pop_back()) pool_.give_back(text.table.back());
}

}  // namespace t2t
