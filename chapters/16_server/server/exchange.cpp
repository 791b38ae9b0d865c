#include "16_server/server/exchange.hpp"

#include <fmt/format.h>

#include <exception>
#include <new>
#include <utility>

#include "timing/measure.hpp"
#include "utf8_start.hpp"

namespace t2t {

Exchange::Exchange(ApiRequest api_request, Service& service, const ServedModel& served,
                   std::uint64_t number, std::int64_t created, std::function<void()> on_change)
    : api_request_(std::move(api_request)),
      service_(service),
      reply_(api_request_, served, number, created),
      deltas_(served.session.bpe, api_request_.all_answers(), api_request_.stop_strings),
      answers_(service.ask(requests_of(api_request_), api_request_.top_logprobs,
                           std::move(on_change))) {}

Exchange::~Exchange() {
  answers_->silence();
  try {
    if (!deltas_.all_ended()) service_.cancel(answers_);
  } catch (const std::bad_alloc&) {  // then they end by themselves
  }
}

/// The next piece that has come already.
std::optional<AnswerDelta> Exchange::next_piece() {
  while (const std::optional<AnswerEvent> answer_event =
             answers_->next(std::chrono::milliseconds(0))) {
    std::optional<AnswerDelta> piece = deltas_.take(*answer_event);
    if (!piece) continue;  // of an answer that a stop string has ended
    // The engine does not know of stop strings.
    if (!piece->reason.empty() && !answer_event->event.ending)
      service_.cancel(answers_, piece->answer);
    if (deltas_.all_ended()) ending_ = piece->reason, status_ = 200;
    return piece;
  }
  return {};
}

void Exchange::stream_on(std::string& text) {
  if (!std::exchange(begun_, true)) text += reply_.stream_begin();
  while (const std::optional<AnswerDelta> piece = next_piece()) text += reply_.stream_piece(*piece);
  if (ended()) text += reply_.stream_end(deltas_.tokens());
}

void Exchange::collect(std::string& text) {
  while (const std::optional<AnswerDelta> piece = next_piece()) reply_.add(*piece);
  if (ended()) text = reply_.whole(deltas_.tokens());
}

std::string Exchange::take() {
  std::string text;
  try {
    api_request_.stream ? stream_on(text) : collect(text);
  } catch (const std::bad_alloc&) {
    fail(503, no_memory, text);
  } catch (const std::exception& error) {
    fail(500, error.what(), text);
  }
  return text;
}

void Exchange::fail(int status, const char* why, std::string& text) {
  status_ = status, ending_ = why;
  text += api_request_.stream ? stream_error(why) : error_json(status, why);
}

std::string Exchange::summary() const {
  return fmt::format("{} prompt tokens, {} generated in {:.2f} s; {}", api_request_.prompt_tokens(),
                     deltas_.tokens(), seconds_since(start_), printable(ending_));
}

}  // namespace t2t
