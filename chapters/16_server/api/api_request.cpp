#include "16_server/api/api_request.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>
#include <stdexcept>
#include <utility>

#include "15_serving/speculation/draft.hpp"
#include "16_server/answer/penalties.hpp"
#include "16_server/api/fields.hpp"
#include "16_server/structured/token_filter.hpp"
#include "utf8_start.hpp"

namespace t2t {

using json = nlohmann::ordered_json;

static constexpr std::size_t most_answers = 8, most_prompts = 64, most_stop_strings = 16,
                             most_top_logprobs = 20;

std::size_t ApiRequest::prompt_tokens() const {
  std::size_t tokens = 0;
  for (const Request& request : requests) tokens += request.prompt.size();
  return tokens;
}

std::vector<Request> requests_of(const ApiRequest& api_request) {
  std::vector<Request> all;
  std::uint64_t drawn = std::random_device{}();
  for (const Request& request : api_request.requests)
    for (std::size_t j = 0; j < api_request.answers; ++j) {
      all.push_back(request);
      all.back().seed = api_request.seed ? *api_request.seed + j : drawn++;
    }
  return all;
}

/// Unsupported fields that would change the answer are refused, unless they are empty.
static void expect_none(Fields& fields, std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (const json* value = fields.any(name); value && !value->empty() && *value != "")
      fields.refuse(name, "none: this server has none of that", *value);
}

/// Refuses all values but those that describe what this server does anyway.
static void expect_one_of(Fields& fields, const char* name, const std::vector<json>& values) {
  const json* value = fields.any(name);
  if (!value || std::ranges::count(values, *value) > 0) return;
  std::string wanted;
  for (const json& one : values) wanted += (wanted.empty() ? "" : " or ") + one.dump();
  fields.refuse(name, wanted + ": this server has nothing else", *value);
}

/// A text, or a list of parts of a text.
static std::string content_of(Fields& message, const std::string& path) {
  const json* content = message.any("content");
  if (!content) throw RequestError(path + "content: wanted a string, got none", path + "content");
  if (content->is_string()) return content->get<std::string>();
  if (!content->is_array()) message.refuse("content", "a string or a list of strings", *content);
  std::string text;
  for (std::size_t i = 0; i < content->size(); ++i) {
    Fields part((*content)[i], fmt::format("{}content[{}].", path, i));
    const json* type = part.any("type");
    if (!type || *type != "text") part.refuse("type", "\"text\"", type ? *type : json());
    text += part.string("text").value_or("");
    part.expect_no_others();
  }
  return text;
}

static ChatMessage read_message(const json& object, std::size_t i) {
  const std::string path = fmt::format("messages[{}].", i);
  Fields fields(object, path);
  std::string role = fields.string("role").value_or("");
  if (role == "developer") role = "system";
  if (role != "system" && role != "user" && role != "assistant")
    fields.refuse("role", "system, user or assistant", role);
  expect_none(fields, {"tool_calls", "function_call", "audio", "refusal"});
  std::string text = content_of(fields, path);
  fields.ignore({"name", "annotations"});
  fields.expect_no_others();
  return {std::move(role), std::move(text)};
}

/// The tokens of a conversation, up to where the answer begins.
static std::vector<int> read_conversation(Fields& fields, const ServedModel& served) {
  if (!served.chat)
    throw RequestError("messages: the model has no chat template; /v1/completions continues a text",
                       "messages");
  const json* messages = fields.any("messages");
  if (!messages || !messages->is_array() || messages->empty())
    fields.refuse("messages", "a list of messages", messages ? *messages : json());
  std::vector<ChatMessage> said;
  for (std::size_t i = 0; i < messages->size(); ++i)
    said.push_back(read_message((*messages)[i], i));
  if (said.back().role != "user")
    fields.refuse("messages", "a user's message at the end", said.back().role);

  return served.chat->conversation(said, served.system);
}

/// A prompt of a completion: its tokens, and its text as the client wrote it, or that of its ids.
struct Prompt {
  std::vector<int> ids;
  std::string text;
};
static Prompt read_prompt(const Fields& fields, const json& prompt, const ServedModel& served) {
  if (prompt.is_string()) {
    const auto text = prompt.get<std::string>();
    return {served.session.prompt(text, SpecialTokens::as_text), text};
  }
  if (!prompt.is_array() || prompt.empty())
    fields.refuse("prompt", "a string, token ids, or a list of either", prompt);
  std::vector<int> ids;
  for (const json& id : prompt) {
    if (!id.is_number_integer() || id < 0 || id >= served.session.config().V)
      fields.refuse("prompt", fmt::format("ids from 0 to {}", served.session.config().V - 1), id);
    ids.push_back(id.get<int>());
  }
  return {ids, served.session.bpe.decode(ids)};
}

/// One prompt, or a list of them. A list that begins with a number is one prompt. `added_tokens`
/// becomes the number of tokens before each.
static std::vector<Prompt> read_prompts(Fields& fields, const ServedModel& served,
                                        std::size_t& added_tokens) {
  const json* given = fields.any("prompt");
  const json prompt = given ? *given : json();
  const bool is_text =
      prompt.is_string() || (prompt.is_array() && !prompt.empty() && prompt[0].is_string());
  added_tokens = is_text && served.session.bpe.first() ? 1 : 0;
  if (!prompt.is_array() || prompt.empty() || prompt[0].is_number())
    return {read_prompt(fields, prompt, served)};
  if (prompt.size() > most_prompts)
    fields.refuse("prompt", fmt::format("at most {} prompts", most_prompts), prompt.size());
  std::vector<Prompt> prompts;
  for (const json& one : prompt) {
    if (one.type() != prompt[0].type())
      fields.refuse("prompt", "strings, or lists of token ids, and not both", one);
    prompts.push_back(read_prompt(fields, one, served));
  }
  return prompts;
}

static std::vector<std::string> read_stop_strings(Fields& fields) {
  const json* stop = fields.any("stop");
  if (!stop) return {};
  const json list = stop->is_array() ? *stop : json::array({*stop});
  std::vector<std::string> strings;
  for (const json& one : list) {
    if (!one.is_string() || one == "") fields.refuse("stop", "non-empty strings", one);
    strings.push_back(one.get<std::string>());
  }
  if (strings.size() > most_stop_strings)
    fields.refuse("stop", fmt::format("at most {} strings", most_stop_strings), strings.size());
  return strings;
}

static Sampling read_sampling(Fields& fields) {
  Sampling sampling;
  sampling.temperature = float(fields.number("temperature", 0, 2).value_or(1));
  sampling.top_p = float(std::max(fields.number("top_p", 0, 1).value_or(1), 1e-6));
  sampling.min_p = float(fields.number("min_p", 0, 1).value_or(0));
  sampling.top_k = fields.integer("top_k", 0, 1 << 30).value_or(0);
  return sampling;
}

/// Any signed integer of 64 bits.
static std::optional<std::uint64_t> read_seed(Fields& fields) {
  using Limits = std::numeric_limits<std::int64_t>;
  const json* seed = fields.any("seed");
  if (!seed) return {};
  const bool is_above = seed->is_number_unsigned() && seed->get<std::uint64_t>() > Limits::max();
  if (!seed->is_number_integer() || is_above)
    fields.refuse("seed", fmt::format("an integer from {} to {}", Limits::min(), Limits::max()),
                  *seed);
  return std::uint64_t(seed->get<std::int64_t>());
}

/// How many new tokens an answer may have: as many as fit, but in completions 16, as OpenAI's API
/// has it, if the request does not say.
static std::size_t read_most(Fields& fields, Endpoint endpoint) {
  const bool is_chat = endpoint == Endpoint::chat_completions;
  constexpr std::size_t any = std::numeric_limits<std::int32_t>::max();
  const auto most = fields.integer("max_tokens", is_chat ? 1 : 0, any);
  return fields.integer("max_completion_tokens", 1, any)
      .value_or(most.value_or(is_chat ? any : 16));
}

/// A token's id as it is written as a name: "50256".
static int read_id(const std::string& name, const ServedModel& served) {
  int id = -1;
  const char* end = name.data() + name.size();
  const auto [read, error] = std::from_chars(name.data(), end, id);
  if (error != std::errc() || read != end || id < 0 || std::size_t(id) >= served.session.config().V)
    throw RequestError(fmt::format("logit_bias: wanted ids from 0 to {} as names, got \"{}\"",
                                   served.session.config().V - 1, printable(name, 40)),
                       "logit_bias");
  return id;
}

static Penalties read_penalties(Fields& fields, const ServedModel& served) {
  Penalties penalties;
  penalties.presence = fields.number("presence_penalty", -2, 2).value_or(0);
  penalties.frequency = fields.number("frequency_penalty", -2, 2).value_or(0);
  const json* given = fields.any("logit_bias");
  if (!given) return penalties;
  Fields biases(*given, "logit_bias.");
  for (const auto& [name, unused] : given->items())
    if (const auto bias = biases.number(name, -100, 100))
      penalties.bias[read_id(name, served)] = *bias;
  return penalties;
}

/// The chat's field says whether, and another one how many; a completion's says how many.
static std::optional<std::size_t> read_top_logprobs(Fields& fields, Endpoint endpoint) {
  if (endpoint == Endpoint::completions) return fields.integer("logprobs", 0, most_top_logprobs);
  const std::optional<std::size_t> most = fields.integer("top_logprobs", 0, most_top_logprobs);
  if (fields.boolean("logprobs")) return most.value_or(0);
  if (most) fields.refuse("logprobs", "true, since there is top_logprobs", false);
  return {};
}

/// The filter of answers that must be JSON, any object or what a schema says.
static AnswerFilter read_format(Fields& fields, const ServedModel& served) {
  const json* format = fields.any("response_format");
  if (!format) return {};
  Fields of_format(*format, "response_format.");
  const std::string type = of_format.string("type").value_or("");
  std::string schema = R"({"type": "object"})";
  if (type == "json_schema") {
    const json* described = of_format.any("json_schema");
    if (!described) of_format.refuse("json_schema", "an object", json());
    Fields of_schema(*described, "response_format.json_schema.");
    const json* wanted = of_schema.any("schema");
    if (!wanted) of_schema.refuse("schema", "a schema", json());
    schema = wanted->dump();
    of_schema.ignore({"name", "description", "strict"});
    of_schema.expect_no_others();
  } else if (type != "text" && type != "json_object") {
    of_format.refuse("type", "text, json_object or json_schema", type);
  }
  of_format.expect_no_others();
  if (type == "text") return {};
  try {
    if (served.stop_tokens.empty())
      throw std::invalid_argument("the model has no token that ends a text");
    return json_filter(served.vocabulary, served.stop_tokens, schema);
  } catch (const std::invalid_argument& error) {
    throw RequestError(fmt::format("response_format: {}", error.what()), "response_format");
  }
}

RequestError no_model(const std::string& name, const ServedModel& served) {
  return {fmt::format("model: wanted \"{}\", got \"{}\"", served.name, printable(name, 40)),
          "model", "model_not_found", 404};
}

/// Refuses what would change the answer, unless it describes what this server does anyway.
static void refuse_others(Fields& fields, const ApiRequest& api_request,
                          const ServedModel& served) {
  const std::optional<std::string> model = fields.string("model");
  if (model && *model != served.name) throw no_model(*model, served);
  fields.integer("best_of", api_request.answers, api_request.answers);
  expect_none(fields, {"tools", "functions", "suffix"});
  expect_one_of(fields, "tool_choice", {"none", "auto"});
  expect_one_of(fields, "function_call", {"none", "auto"});
  expect_one_of(fields, "modalities", {json::array({"text"})});
  expect_one_of(fields, "reasoning_effort", {"none"});
  expect_one_of(fields, "verbosity", {"medium"});
  for (const char* name : {"audio", "web_search_options", "moderation"})  // {} asks for them, too
    if (const json* value = fields.any(name))
      fields.refuse(name, "none: this server has none of that", *value);
  fields.ignore({"user", "store", "metadata", "service_tier", "safety_identifier", "prediction",
                 "prompt_cache_key", "prompt_cache_options", "prompt_cache_retention",
                 "parallel_tool_calls"});
  fields.expect_no_others();
}

/// The common part of all answers.
static Request read_request(Fields& fields, Endpoint endpoint, const ServedModel& served) {
  Request request;
  request.sampling = read_sampling(fields);
  request.stop_tokens = served.stop_tokens;
  request.filter = with_penalties(read_penalties(fields, served), read_format(fields, served));
  request.max_drafts = served.max_drafts;
  request.max_new_tokens = read_most(fields, endpoint);
  return request;
}

ApiRequest read_api_request(Endpoint endpoint, const std::string& body, const ServedModel& served) {
  const json object = parse_body(body);
  Fields fields(object, "");
  const bool is_chat = endpoint == Endpoint::chat_completions;
  ApiRequest api_request{endpoint, {}, read_stop_strings(fields)};
  std::vector<Prompt> prompts;
  if (is_chat)
    prompts.push_back({read_conversation(fields, served), {}});
  else
    prompts = read_prompts(fields, served, api_request.added_tokens);
  const Request request = read_request(fields, endpoint, served);
  for (Prompt& prompt : prompts) {
    Request& one = api_request.requests.emplace_back(request);
    one.prompt = std::move(prompt.ids);
    api_request.texts.push_back(std::move(prompt.text));
    if (served.max_drafts > 0)
      one.drafter = served.make_drafter(one.prompt.size() + one.max_new_tokens);
  }
  api_request.answers = fields.integer("n", 1, most_answers).value_or(1);
  api_request.seed = read_seed(fields);
  api_request.top_logprobs = read_top_logprobs(fields, endpoint);
  api_request.stream = fields.boolean("stream");
  api_request.echo = !is_chat && fields.boolean("echo");
  for (Request& one : api_request.requests)
    one.wants_prompt_logits = api_request.echo && api_request.top_logprobs;
  if (const json* options = fields.any("stream_options")) {
    Fields of_stream(*options, "stream_options.");
    api_request.usage_at_end = of_stream.boolean("include_usage");
    of_stream.ignore({"include_obfuscation"});
    of_stream.expect_no_others();
  }
  refuse_others(fields, api_request, served);
  return api_request;
}

}  // namespace t2t
