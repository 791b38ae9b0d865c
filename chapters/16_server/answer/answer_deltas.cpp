#include "16_server/answer/answer_deltas.hpp"

#include <new>
#include <stdexcept>

#include "utf8_start.hpp"

namespace t2t {

std::optional<AnswerDelta> AnswerDeltas::take(const AnswerEvent& answer_event) {
  const Event& event = answer_event.event;
  if (ended_.at(answer_event.answer)) return {};
  if (event.error == no_memory) throw std::bad_alloc();
  if (!event.error.empty()) throw std::runtime_error(event.error);
  AnswerText& text = texts_[answer_event.answer];
  AnswerDelta piece{answer_event.answer, {}, answer_event.logprobs};
  piece.offset = characters_[answer_event.answer];
  piece.prompt = answer_event.prompt;
  if (event.token) {
    piece.text = text.push(*event.token);
    characters_[answer_event.answer] += count_characters(bpe_.bytes(*event.token));
    ++tokens_;
  }
  if (event.ending) piece.text += text.finish();
  if (text.stopped() || event.ending == Ending::stop_token)
    piece.reason = "stop";
  else if (event.ending)
    piece.reason = "length";
  if (!piece.reason.empty()) ended_[answer_event.answer] = true, --going_on_;
  return piece;
}

}  // namespace t2t
