#include "16_server/answer/answering.hpp"

#include <new>
#include <stdexcept>

#include "utf8_start.hpp"

namespace t2t {

std::optional<AnswerDelta> Answering::take(const Said& said) {
  const Event& event = said.event;
  if (ended_.at(said.answer)) return {};
  if (event.error == no_memory) throw std::bad_alloc();
  if (!event.error.empty()) throw std::runtime_error(event.error);
  AnswerText& text = texts_[said.answer];
  AnswerDelta piece{said.answer, {}, said.logprobs};
  piece.offset = characters_[said.answer];
  piece.prompt = said.prompt;
  if (event.token) {
    piece.text = text.push(*event.token);
    characters_[said.answer] += count_characters(bpe_.bytes(*event.token));
    ++tokens_;
  }
  if (event.ending) piece.text += text.finish();
  if (text.stopped() || event.ending == Ending::stop_token)
    piece.reason = "stop";
  else if (event.ending)
    piece.reason = "length";
  if (!piece.reason.empty()) ended_[said.answer] = true, --going_on_;
  return piece;
}

}  // namespace t2t
