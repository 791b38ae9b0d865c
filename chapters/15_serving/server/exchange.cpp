#include "15_serving/server/exchange.hpp"

#include <fmt/format.h>

#include <stdexcept>
#include <utility>

#include "timing/measure.hpp"
#include "utf8_start.hpp"

namespace t2t {

Exchange::Exchange(Ask ask, Service& service, const ServedModel& served, std::uint64_t number,
                   std::int64_t created)
    : ask_(std::move(ask)),
      service_(service),
      reply_(ask_, served, number, created),
      answering_(served.session.bpe, ask_.all_answers(), ask_.stop_strings),
      answers_(service.ask(requests_of(ask_), ask_.likeliest)) {}

Exchange::~Exchange() {
  if (!answering_.all_ended()) service_.cancel(answers_);
}

std::optional<AnswerPiece> Exchange::next_piece() {
  const std::optional<Said> said = answers_->next(std::chrono::milliseconds(100));
  if (!said) return {};
  std::optional<AnswerPiece> piece = answering_.take(*said);
  // The engine does not know of stop strings.
  if (piece && !piece->reason.empty() && !said->event.ending)
    service_.cancel(answers_, piece->answer);
  if (answering_.all_ended()) ending_ = piece->reason;
  return piece;
}

/// Writes to the client; without a text it only looks whether the client is still there.
static bool send(const Client& client, const std::string& text) {
  return text.empty() ? client.is_there() : client.write(text);
}

bool Exchange::stream_on(const Client& client) {
  if (!std::exchange(begun_, true)) return send(client, reply_.stream_begin());
  const std::optional<AnswerPiece> piece = next_piece();
  std::string text = piece ? reply_.stream_piece(*piece) : "";
  if (answering_.all_ended()) text += reply_.stream_end(answering_.tokens());
  return send(client, text);
}

bool Exchange::wait_for_whole(const Client& client) {
  if (const std::optional<AnswerPiece> piece = next_piece()) reply_.add(*piece);
  return send(client, answering_.all_ended() ? reply_.whole(answering_.tokens()) : "");
}

Exchange::State Exchange::go_on(const Client& client) {
  try {
    if (!(ask_.stream ? stream_on(client) : wait_for_whole(client))) return State::broken;
    return answering_.all_ended() ? State::done : State::going_on;
  } catch (const std::runtime_error& error) {
    ending_ = error.what();
    if (ask_.stream) client.write(stream_error(error.what()));
    return State::broken;
  }
}

std::string Exchange::summary() const {
  return fmt::format("{} tokens read, {} said in {:.2f} s; {}", ask_.prompt_tokens(),
                     answering_.tokens(), seconds_since(start_), printable(ending_));
}

}  // namespace t2t
