#include "15_serving/engine/engine.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "shapes.hpp"

namespace t2t {

Engine::Engine(PageReader reader)
    : reader_(std::move(reader)),
      pool_(reader_.sizes.pages),
      tree_(pool_, reader_.sizes.page),
      sampling_(reader_.V) {
  plan_step({}, {}, 0, limits());
}

/// Of the next step. While texts are answered, prompts come in small chunks, so that no step takes
/// long.
StepLimits Engine::limits() const {
  const PageSizes& sizes = reader_.sizes;
  const auto is_answered = [](const Text& text) { return text.tokens.size() - text.computed == 1; };
  const auto answers = std::size_t(std::ranges::count_if(running_, is_answered));
  const bool in_chunks = sizes.chunk > 0 && answers > 0;
  const std::size_t most = std::max(answers + sizes.chunk, sizes.texts);
  return {in_chunks ? std::min(most, sizes.budget) : sizes.budget, sizes.texts, sizes.page};
}

std::size_t Engine::most_tokens() const {
  return std::min(reader_.positions, reader_.sizes.pages * reader_.sizes.page);
}

void Engine::expect_token(const char* name, int id) const {
  expect(id >= 0 && std::size_t(id) < reader_.V, name, fmt::format("0 to {}", reader_.V - 1), id);
}

std::size_t Engine::submit(Request request) {
  expect(!request.prompt.empty(), "tokens of the prompt", "at least 1", 0);
  expect(request.prompt.size() < most_tokens(), "tokens of the prompt",
         fmt::format("below the {} that a text can have", most_tokens()),
         double(request.prompt.size()));
  for (const int id : request.prompt) expect_token("an id of the prompt", id);
  for (const int id : request.stops) expect_token("a stop", id);
  expect_sampling(request.sampling);
  const std::size_t id = next_id_++;
  const Random random(request.seed);
  std::vector<int> tokens = request.prompt;
  waiting_.push_back({id, id, std::move(request), std::move(tokens), 0, {}, 0, random});
  return id;
}

Engine::Text& Engine::text_of(std::size_t id) { return *by_id(running_, id); }

bool Engine::cancel(std::size_t id) {
  for (std::vector<Text>* texts : {&running_, &waiting_})
    if (const auto text = by_id(*texts, id); text != texts->end()) {
      leave(*text);
      texts->erase(text);
      return true;
    }
  return false;
}

std::vector<ScheduledText> Engine::scheduled_running() const {
  std::vector<ScheduledText> texts;
  const std::size_t spare = tree_.spare();
  for (const Text& text : running_) {
    std::size_t freed = tree_.spare(text.table) - spare;
    for (const std::size_t page : text.table) freed += pool_.users(page) == 1;
    texts.push_back(
        {text.id, text.arrival, text.tokens.size(), text.computed, text.table.size(), freed});
  }
  return texts;
}

/// A page for one text alone.
std::size_t Engine::take_page() {
  if (pool_.free() == 0) tree_.give_up();
  return pool_.take();
}

/// Takes pages until the text has room for so many more tokens.
void Engine::make_room(Text& text, std::size_t tokens) {
  while (text.table.size() * reader_.sizes.page < text.computed + tokens)
    text.table.push_back(take_page());
}

/// The next token of a text whose tokens have all been read, and whether it ends the text.
Event Engine::next(Text& text, Row logits) {
  if (text.request.most == 0) return {text.id, {}, Ending::most_tokens};
  if (scored) scored(text.id, logits);
  if (text.request.filter)
    text.request.filter(std::span(text.tokens).subspan(text.request.prompt.size()), logits);
  const int token = next_token(logits, text.request.sampling, text.random, sampling_);
  if (std::ranges::count(text.request.stops, token) > 0) return {text.id, {}, Ending::stop_token};
  text.tokens.push_back(token);
  Event event{text.id, token, {}};
  if (text.tokens.size() == text.request.prompt.size() + text.request.most)
    event.ending = Ending::most_tokens;
  else if (text.tokens.size() == most_tokens())
    event.ending = Ending::context_full;
  return event;
}

/// As next. If no token can be chosen, the event has the reason.
Event Engine::choose(Text& text, Row logits) {
  try {
    return next(text, logits);
  } catch (const std::exception& thrown) {
    return {text.id, {}, {}, error_of(thrown)};
  }
}

std::vector<Event> Engine::step() {
  if (idle()) return {};
  plan_ =
      plan_step(scheduled_running(), scheduled_waiting(), pool_.free() + tree_.spare(), limits());
  for (const std::size_t id : plan_.stopped) stop(id);
  admit(plan_.admitted);

  plan_readings();
  if (readings_.empty()) return {};

  std::vector<Piece> pieces;
  std::size_t wanted = 0;
  for (const Reading& reading : readings_) {
    const Text& text = text_of(reading.id);
    pieces.push_back({text.place, text.computed, reading.ids, text.table, reading.wanted});
    wanted += reading.wanted;
  }
  Tensor<2> logits = empty(wanted, reader_.V);
  reader_.read(pieces, logits);

  std::vector<Event> events;
  std::size_t answered = 0;
  for (Reading& reading : readings_) {
    const std::size_t first = events.size();
    Text& text = text_of(reading.id);
    answer(text, reading, Matrix(logits).rows_from(answered, reading.wanted), events);
    answered += reading.wanted;
    rewind(text);
    const bool has_error = events.size() > first && !events.back().error.empty();
    if (!has_error) tree_.keep(std::span(text.tokens).first(text.computed), text.table);
    if (has_error || (events.size() > first && events.back().ending)) cancel(reading.id);
  }
  return events;
}

}  // namespace t2t
