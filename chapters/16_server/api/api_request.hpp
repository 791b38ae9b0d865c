// What a client asks for, read from its request's body: the fields of OpenAI's chat completions and
// completions that this server supports. All others are refused by name, so that nobody mistakes an
// answer for what it is not.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "15_serving/engine/engine.hpp"
#include "16_server/api/fields.hpp"
#include "16_server/api/served_model.hpp"

namespace t2t {

enum class Endpoint { chat_completions, completions };

struct ApiRequest {
  Endpoint endpoint;
  std::vector<Request> requests;  // one for each prompt; its answers differ only in their seeds
  std::vector<std::string> stop_strings;         // end an answer before them
  std::size_t answers = 1;                       // to each prompt
  std::optional<std::uint64_t> seed = {};        // answer j to a prompt has seed + j; none: drawn
  std::optional<std::size_t> top_logprobs = {};  // tokens to list for each token; none: no logprobs
  bool stream = false;                           // the answers come in pieces, as they are made
  bool usage_at_end = false;                     // of a stream
  bool echo = false;                             // of completions: the prompt comes first
  std::size_t added_tokens = 0;         // before each prompt, not sent by the client, such as bos
  std::vector<std::string> texts = {};  // of completions: each prompt, as the client wrote it

  std::size_t all_answers() const { return requests.size() * answers; }
  std::size_t prompt_tokens() const;
  /// The request of answer i of all, and the text of its prompt.
  const Request& request_of(std::size_t i) const { return requests.at(i / answers); }
  const std::string& text_of(std::size_t i) const { return texts.at(i / answers); }
};

/// A request for each answer: first those to the first prompt, then those to the next.
std::vector<Request> requests_of(const ApiRequest& api_request);

/// Reads a body for this model. Throws RequestError("field: wanted …, got …") for a body that is
/// not JSON, a field of another type or out of its range, a field that this server does not
/// support, and a conversation that the model's format can't write. Engine::submit checks whether
/// the prompt fits.
ApiRequest read_api_request(Endpoint endpoint, const std::string& body, const ServedModel& served);

/// The error for a client that asks for a model of another name.
RequestError no_model(const std::string& name, const ServedModel& served);

}  // namespace t2t
