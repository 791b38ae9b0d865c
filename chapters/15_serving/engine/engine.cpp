#include "15_serving/engine/engine.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "shapes.hpp"

namespace t2t {

Engine::Engine(ModelRunner runner)
    : sequences_(std::move(runner)), sampling_(sequences_.runner().V) {
  plan_step({}, {}, 0, sequences_.limits());
}

std::size_t Engine::submit(Request request) {
  expect(!request.prompt.empty(), "tokens of the prompt", "at least 1", 0);
  expect(request.prompt.size() < max_tokens(), "tokens of the prompt",
         fmt::format("below the {} that a sequence can have", max_tokens()),
         double(request.prompt.size()));
  for (const int id : request.prompt)
    expect_token("an id of the prompt", id, sequences_.runner().V);
  for (const int id : request.stop_tokens) expect_token("a stop token", id, sequences_.runner().V);
  expect_sampling(request.sampling);
  const std::size_t id = next_id_++;
  const Random random(request.seed);
  std::vector<int> tokens = request.prompt;
  sequences_.add({id, id, std::move(request), std::move(tokens), 0, {}, 0, random});
  return id;
}

/// Hands on the first rows, the logits before the next tokens of the prompt, and returns the
/// others.
Matrix Engine::hand_on(Sequence& sequence, SequenceStep& part, Matrix logits) {
  try {
    for (std::size_t i = 0; i < part.prompt_logits; ++i) {
      ++sequence.prompt_logits_sent;
      if (on_prompt_logits)
        on_prompt_logits(sequence.id, sequence.request.prompt[sequence.prompt_logits_sent],
                         logits.row(i));
    }
  } catch (const std::exception& thrown) {
    part.error = error_of(thrown);
  }
  return logits.rows_from(part.prompt_logits, logits.rows - part.prompt_logits);
}

/// Chooses a sequence's next tokens from the logits [wanted, V], row by row, for as long as a draft
/// is the token that is chosen. The draft's keys and values are right then.
void Engine::answer(Sequence& sequence, SequenceStep& part, Matrix logits,
                    std::vector<Event>& events) {
  logits = hand_on(sequence, part, logits);
  sequence.computed += part.ids.size() - part.drafted;
  if (!part.error.empty()) {
    events.push_back({sequence.id, {}, {}, part.error});
    return;
  }
  const std::span<const int> drafts = std::span(part.ids).last(part.drafted);
  for (std::size_t i = 0; i < logits.rows; ++i) {
    const Event& event = events.emplace_back(choose(sequence, logits.row(i)));
    if (event.ending || !event.error.empty()) return;
    if (i == drafts.size() || event.token != drafts[i]) return;
    ++part.accepted, ++sequence.computed;
  }
}

/// The next token of a sequence whose tokens have all been read, and whether it ends the sequence.
Event Engine::next(Sequence& sequence, Row logits) {
  if (sequence.request.max_new_tokens == 0) return {sequence.id, {}, Ending::most_tokens};
  if (on_logits) on_logits(sequence.id, logits);
  if (sequence.request.filter)
    sequence.request.filter(std::span(sequence.tokens).subspan(sequence.request.prompt.size()),
                            logits);
  const int token = next_token(logits, sequence.request.sampling, sequence.random, sampling_);
  if (std::ranges::count(sequence.request.stop_tokens, token) > 0)
    return {sequence.id, {}, Ending::stop_token};
  sequence.tokens.push_back(token);
  Event event{sequence.id, token, {}};
  if (sequence.tokens.size() == sequence.request.prompt.size() + sequence.request.max_new_tokens)
    event.ending = Ending::most_tokens;
  else if (sequence.tokens.size() == max_tokens())
    event.ending = Ending::context_full;
  return event;
}

/// As next. If no token can be chosen, the event has the reason.
Event Engine::choose(Sequence& sequence, Row logits) {
  try {
    return next(sequence, logits);
  } catch (const std::exception& thrown) {
    return {sequence.id, {}, {}, error_of(thrown)};
  }
}

std::vector<Event> Engine::step() {
  if (idle()) return {};
  plan_ = plan_step(sequences_.scheduled_running(), sequences_.scheduled_waiting(),
                    sequences_.pages_left(), sequences_.limits());
  for (const std::size_t id : plan_.preempted) sequences_.preempt(id);
  sequences_.admit(plan_.admitted);

  sequence_steps_ = plan_sequence_steps(plan_, sequences_);
  if (sequence_steps_.empty()) return {};

  std::vector<Chunk> chunks;
  std::size_t wanted = 0;
  for (const SequenceStep& part : sequence_steps_) {
    const Sequence& sequence = sequences_.running_sequence(part.id);
    chunks.push_back({sequence.index, sequence.computed, part.ids, sequence.table, part.wanted});
    wanted += part.wanted;
  }
  Tensor<2> logits = empty(wanted, sequences_.runner().V);
  sequences_.runner().run(chunks, logits);

  std::vector<Event> events;
  std::size_t answered = 0;
  for (SequenceStep& part : sequence_steps_) {
    const std::size_t first = events.size();
    Sequence& sequence = sequences_.running_sequence(part.id);
    answer(sequence, part, Matrix(logits).rows_from(answered, part.wanted), events);
    answered += part.wanted;
    sequences_.rewind(sequence);
    const bool has_error = events.size() > first && !events.back().error.empty();
    if (!has_error) sequences_.cache(sequence);
    if (has_error || (events.size() > first && events.back().ending)) cancel(part.id);
  }
  return events;
}

}  // namespace t2t
