// Replies to a client, as JSON: whole answers, or the events of a stream.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "16_server/answer/answer_deltas.hpp"
#include "16_server/api/api_request.hpp"

namespace t2t {

/// The JSON of the answers to one request.
class Reply {
 public:
  /// `number` distinguishes the server's replies; `created` is in seconds since 1970. `api_request`
  /// and the model must outlive it.
  Reply(const ApiRequest& api_request, const ServedModel& served, std::uint64_t number,
        std::int64_t created);

  /// Keeps a piece for whole().
  void add(const AnswerDelta& piece);
  /// All answers, once they have ended, with `tokens` tokens in all.
  std::string whole(std::size_t tokens) const;

  // The events of a stream, with "data: " before and an empty line after each of them.

  /// The beginnings of all answers: a chat's have the role of the speaker, a completion's with
  /// `echo` the prompt, unless it comes later, with its log-probabilities.
  std::string stream_begin() const;
  /// One piece, after the prompt if it has the prompt's log-probabilities. Empty if there is
  /// nothing to see.
  std::string stream_piece(const AnswerDelta& piece) const;
  /// The end: the number of tokens, if requested, and "[DONE]".
  std::string stream_end(std::size_t tokens) const;

 private:
  struct Collected {
    std::string text, reason;  // the text begins with the prompt if it is to be echoed
    std::size_t offset = 0;    // characters of the prompt
    std::vector<AnswerDelta> with_logprobs;  // the pieces that have log-probabilities
  };
  nlohmann::ordered_json stream_head() const;
  nlohmann::ordered_json logprobs_json(std::size_t answer,
                                       std::span<const AnswerDelta> pieces) const;

  const ApiRequest& api_request_;
  const ServedModel& served_;
  std::string id_;
  std::int64_t created_;
  std::vector<Collected> answers_;
};

/// {"error": {"message": …, "type": …, "param": …, "code": …}}: param is the name of the field, and
/// code OpenAI's name for the reason; null if empty.
std::string error_json(int status, std::string_view message, std::string_view param = {},
                       std::string_view code = {});
/// The model, and the list of models: this one.
std::string model_json(const ServedModel& served);
std::string models_json(const ServedModel& served);
/// A stream's event that says why it ends without its answers.
std::string stream_error(std::string_view message);

}  // namespace t2t
