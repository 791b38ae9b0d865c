// What must be true of the server's JSON: what is read from a request, and what a client gets.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "16_server/api/api_request.hpp"
#include "16_server/api/fields.hpp"
#include "16_server/api/metrics.hpp"
#include "16_server/api/reply.hpp"
#include "16_server/structured/token_filter.hpp"
#include "served_tiny.hpp"
#include "support/lists.hpp"
#include "support/refuses.hpp"

namespace t2t::api_test {

using nlohmann::json;
using std::size_t;

namespace {
struct Served {
  Session session = tiny_session();
  ServedModel model = served_model(session);

  ApiRequest chat(const std::string& more = "") const {
    return read_api_request(Endpoint::chat_completions,
                            R"({"messages": [{"role": "user", "content": "Hi"}])" + more + "}",
                            model);
  }
  ApiRequest go_on(const std::string& body) const {
    return read_api_request(Endpoint::completions, body, model);
  }
};
const Served& served() {
  static const Served one;
  return one;
}
}  // namespace

TEST_CASE("answers end at any token that ends what a model says, and control tokens are no text") {
  Config config = tiny_config();
  config.V = 260;
  BpeTables tables = tiny_tokenizer(258);
  for (const char* mark : {"<|endoftext|>", "<|mine|>"}) {
    tables.tokens.push_back(mark);
    tables.kinds.push_back(TokenKind::control);
  }
  Random random(1);
  const ModelWeights weights = draw_model(config, random);
  const std::vector<std::uint8_t> bytes = model_bytes(config, weights, tables, "tiny");
  const Session session = tiny_session(bytes);
  CHECK(served_model(session).stop_tokens == Ids{257, 258});
  tables.eot = 259;
  const std::vector<std::uint8_t> named = model_bytes(config, weights, tables, "tiny");
  const Session with_name = tiny_session(named);
  CHECK(served_model(with_name).stop_tokens == Ids{257, 258, 259});
  AnswerText answer(session.bpe, {});
  std::string text;
  for (const int id : {int('A'), 259, int('B')}) text += answer.push(id);
  CHECK(text + answer.finish() == "AB");
}

TEST_CASE("a system's message without a text is one, too") {
  const ApiRequest api_request =
      read_api_request(Endpoint::chat_completions,
                       R"({"messages": [{"role": "system", "content": ""},
                                            {"role": "user", "content": "Hi"}]})",
                       served().model);
  CHECK(served().session.bpe.decode(api_request.requests.at(0).prompt) ==
        "<|im_start|>system\n<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n");
}

TEST_CASE("an echoed prompt is the text that the client wrote, whatever its tokens are") {
  Config config = tiny_config();
  BpeTables tables = tiny_tokenizer(258);
  tables.pre_tokenizer = "qwen2", tables.bos = 256, tables.bos_first = true;
  Random random(1);
  const std::vector<std::uint8_t> bytes =
      model_bytes(config, draw_model(config, random), tables, "tiny");
  const Session session = tiny_session(bytes);
  const ServedModel model = served_model(session);
  const ApiRequest api_request =
      read_api_request(Endpoint::completions, R"({"prompt": "e\u0301", "echo": true})", model);
  CHECK(api_request.requests.at(0).prompt == Ids{256, 0xc3, 0xa9});  // é, after bos
  CHECK(api_request.texts.at(0) == "e\u0301");
  const ApiRequest ids =
      read_api_request(Endpoint::completions, R"({"prompt": [97, 98], "echo": true})", model);
  CHECK(ids.texts.at(0) == "ab");
}

TEST_CASE("a conversation becomes the tokens of the model's format") {
  const ServedModel& model = served().model;
  CHECK(model.name == "tiny");
  CHECK(model.system == "You are tiny.");
  CHECK(model.stop_tokens == Ids{257});
  const auto text = [&](const std::string& body) {
    return served().session.bpe.decode(
        read_api_request(Endpoint::chat_completions, body, model).requests[0].prompt);
  };
  CHECK(text(R"({"messages": [{"role": "user", "content": "Hi"}]})") ==
        "<|im_start|>system\nYou are tiny.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n"
        "<|im_start|>assistant\n");
  CHECK(text(R"({"messages": [{"role": "developer", "content": "Be brief."},
                              {"role": "user", "content": "Hi", "name": "Ann"},
                              {"role": "assistant", "content": "Ho"},
                              {"role": "user", "content": [{"type": "text", "text": "a"},
                                                           {"type": "text", "text": "b"}]}]})") ==
        "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n"
        "<|im_start|>assistant\nHo<|im_end|>\n<|im_start|>user\nab<|im_end|>\n"
        "<|im_start|>assistant\n");
  // Marks that are typed are text: ten tokens of a byte, not one that ends the turn.
  const ApiRequest typed = served().chat(R"(, "stop": "<|im_end|>")");
  CHECK(typed.stop_strings[0].size() == 10);
  const Ids prompt =
      read_api_request(Endpoint::chat_completions,
                       R"({"messages": [{"role": "user", "content": "<|im_end|>"}]})", model)
          .requests[0]
          .prompt;
  CHECK(std::count(prompt.begin(), prompt.end(), 257) == 2);
  CHECK(served().go_on(R"({"prompt": "<|im_end|>"})").requests[0].prompt.size() == 10);
}

TEST_CASE("a model with the same tokens drafts for as long a text as the answer may become") {
  const Session session = tiny_session(), drafting = tiny_session();
  ServedModel model = served_model(session);
  const auto ask = [&] {
    return read_api_request(Endpoint::completions,
                            R"({"prompt": "What is next?", "max_tokens": 5})", model);
  };
  CHECK(!ask().requests[0].drafter);
  model.max_drafts = 3;
  use_drafter(model, drafting, 64);
  const Drafter drafter = ask().requests[0].drafter;
  REQUIRE(drafter);
  Ids tokens = ask().requests[0].prompt;
  CHECK(drafter(tokens, 3) == model_drafter(session.model, 64)(tokens, 3));
  tokens.insert(tokens.end(), 4, 65);
  CHECK(drafter(tokens, 3).size() == 2);  // room for the prompt and five tokens
  use_drafter(model, drafting, tokens.size() - 1);
  CHECK(ask().requests[0].drafter(tokens, 3) == Ids{});
}

TEST_CASE("a drafter with another token is refused") {
  std::vector<std::uint8_t> bytes = tiny_file();
  const std::string_view mark = "<|im_start|>";
  for (auto at = bytes.begin();; ++at) {
    at = std::search(at, bytes.end(), mark.begin(), mark.end());
    if (at == bytes.end()) break;
    at[2] = 'I';
  }
  const Session session = tiny_session(), drafter = tiny_session(bytes);
  ServedModel model = served_model(session);
  REFUSES(use_drafter(model, drafter, 64),
          "tiny.gguf: wanted the served model's tokens, got others");
}

TEST_CASE("fields of a request, and what they are by default") {
  const ApiRequest plain = served().chat();
  CHECK(plain.requests[0].sampling.temperature == 1);
  CHECK(plain.requests[0].max_new_tokens > 1000000);
  CHECK(plain.requests[0].stop_tokens == Ids{257});
  CHECK(plain.answers == 1);
  CHECK_FALSE((plain.stream || plain.usage_at_end || plain.seed || plain.top_logprobs));
  const ApiRequest full = served().chat(
      R"(, "model": "tiny", "temperature": 0, "top_p": 0.5, "top_k": 7, "min_p": 0.25, "n": 3,
         "max_completion_tokens": 9, "max_tokens": 5, "seed": 12, "stop": ["a", "bc"],
         "logprobs": true, "top_logprobs": 4, "stream": true, "user": "ann", "tools": [],
         "stream_options": {"include_usage": true}, "presence_penalty": 0, "logit_bias": null)");
  CHECK(full.requests[0].sampling.temperature == 0);
  CHECK(full.requests[0].sampling.top_p == 0.5f);
  CHECK(full.requests[0].sampling.top_k == 7);
  CHECK(full.requests[0].sampling.min_p == 0.25f);
  CHECK(full.requests[0].max_new_tokens == 9);
  CHECK(full.answers == 3);
  CHECK(full.seed == 12);
  CHECK(full.stop_strings == std::vector<std::string>{"a", "bc"});
  CHECK(full.top_logprobs == 4);
  CHECK((full.stream && full.usage_at_end));
  const ApiRequest text = served().go_on(R"({"prompt": "abc", "logprobs": 2, "echo": true})");
  CHECK(text.requests[0].prompt == Ids{97, 98, 99});
  CHECK(text.top_logprobs == 2);
  CHECK(text.echo);
  CHECK(served().go_on(R"({"prompt": [1, 257]})").requests[0].prompt == Ids{1, 257});
}

TEST_CASE("fields that say what happens anyway, or that change no answer, are taken") {
  const ApiRequest api_request = served().chat(
      R"(, "tools": [], "functions": [], "tool_choice": "none", "function_call": "auto",
         "parallel_tool_calls": false, "modalities": ["text"], "reasoning_effort": "none",
         "verbosity": "medium", "logit_bias": {}, "presence_penalty": 0, "frequency_penalty": 0.0,
         "n": 2, "best_of": 2, "top_p": 0, "seed": -1, "user": "ann", "store": true,
         "metadata": {"a": "b"}, "service_tier": "auto", "safety_identifier": "s",
         "prompt_cache_key": "k", "prompt_cache_options": {}, "prompt_cache_retention": "24h",
         "prediction": {"type": "content", "content": "x"}, "audio": null, "stop": null)");
  CHECK(api_request.seed == std::uint64_t(-1));
  CHECK(api_request.requests[0].sampling.top_p > 0);
  CHECK(api_request.requests[0].sampling.top_p < 1e-5);  // the likeliest token alone
  CHECK(api_request.stop_strings.empty());
  // What a client keeps of an answer can be sent back.
  CHECK_NOTHROW(read_api_request(Endpoint::chat_completions, R"({"messages": [
      {"role": "user", "content": "a"},
      {"role": "assistant", "content": "b", "refusal": null, "annotations": [], "audio": null,
       "function_call": null, "tool_calls": null},
      {"role": "user", "content": "c"}]})",
                                 served().model));
}

TEST_CASE("a completion has 16 tokens, as OpenAI's have, unless the request says how many") {
  CHECK(served().go_on(R"({"prompt": "a"})").requests[0].max_new_tokens == 16);
  CHECK(served().go_on(R"({"prompt": "a", "max_tokens": null})").requests[0].max_new_tokens == 16);
  CHECK(served().go_on(R"({"prompt": "a", "max_tokens": 0})").requests[0].max_new_tokens == 0);
  CHECK(served().go_on(R"({"prompt": "a", "max_tokens": 99})").requests[0].max_new_tokens == 99);
}

TEST_CASE("several prompts: an answer to a prompt is what it gets by itself") {
  const auto prompts = [](const std::string& list) {
    std::vector<Ids> all;
    for (const Request& request : served().go_on(R"({"prompt": )" + list + "}").requests)
      all.push_back(request.prompt);
    return all;
  };
  CHECK(prompts(R"("ab")") == std::vector<Ids>{{97, 98}});
  CHECK(prompts(R"(["ab", "c"])") == std::vector<Ids>{{97, 98}, {99}});
  CHECK(prompts("[97, 98]") == std::vector<Ids>{{97, 98}});
  CHECK(prompts("[[97, 98], [257]]") == std::vector<Ids>{{97, 98}, {257}});
  const ApiRequest api_request =
      served().go_on(R"({"prompt": ["a", "b"], "n": 3, "seed": 7, "max_tokens": 2})");
  CHECK(api_request.all_answers() == 6);
  CHECK(api_request.prompt_tokens() == 2);
  const std::vector<Request> all = requests_of(api_request);
  REQUIRE(all.size() == 6);
  for (size_t i = 0; i < 6; ++i) {
    CAPTURE(i);
    CHECK(all[i].prompt == Ids{i < 3 ? 97 : 98});
    CHECK(all[i].seed == 7 + i % 3);
    CHECK(&api_request.request_of(i) == &api_request.requests[i / 3]);
  }
  // Without a seed, equal prompts get different ones.
  std::set<std::uint64_t> seeds;
  for (const Request& one : requests_of(served().go_on(R"({"prompt": ["a", "a"], "n": 2})")))
    seeds.insert(one.seed);
  CHECK(seeds.size() == 4);
}

TEST_CASE("what a request may not say is refused by its name") {
  const auto refused = [](const std::string& more, const std::string& message) {
    CAPTURE(more);
    REFUSES(served().chat(more), message);
  };
  refused(R"(, "temperature": "hot")", "temperature: wanted a number from 0 to 2, got \"hot\"");
  refused(R"(, "temperature": 2.5)", "temperature: wanted a number from 0 to 2, got 2.5");
  refused(R"(, "top_p": -0.1)", "top_p: wanted a number from 0 to 1, got -0.1");
  refused(R"(, "n": 9)", "n: wanted an integer from 1 to 8, got 9");
  refused(R"(, "n": 1.0)", "n: wanted an integer from 1 to 8, got 1.0");
  refused(R"(, "n": -1)", "n: wanted an integer from 1 to 8, got -1");
  refused(R"(, "seed": 18446744073709551615)",
          "seed: wanted an integer from -9223372036854775808 to 9223372036854775807, got "
          "18446744073709551615");
  refused(R"(, "seed": 1.5)",
          "seed: wanted an integer from -9223372036854775808 to 9223372036854775807, got 1.5");
  refused(R"(, "max_tokens": 0)", "max_tokens: wanted an integer from 1 to 2147483647, got 0");
  refused(R"(, "stream": 1)", "stream: wanted true or false, got 1");
  refused(R"(, "stop": [1])", "stop: wanted non-empty strings, got 1");
  refused(R"(, "stop": "")", "stop: wanted non-empty strings, got \"\"");
  refused(R"(, "model": "gpt-9")", "model: wanted \"tiny\", got \"gpt-9\"");
  refused(R"(, "presence_penalty": 2.5)",
          "presence_penalty: wanted a number from -2 to 2, got 2.5");
  refused(R"(, "logit_bias": {"5": 101})",
          "logit_bias.5: wanted a number from -100 to 100, got 101");
  for (const std::string name : {"258", "-1", "a", "", "1.0", " 1", "99999999999"})
    refused(R"(, "logit_bias": {")" + name + R"(": 1})",
            "logit_bias: wanted ids from 0 to 257 as names, got \"" + name + '"');
  refused(R"(, "logit_bias": [1])", "logit_bias: wanted an object, got a list");
  refused(R"(, "tools": [{}])", "tools: wanted none: this server has none of that, got a list");
  refused(
      R"(, "tool_choice": "required")",
      "tool_choice: wanted \"none\" or \"auto\": this server has nothing else, got \"required\"");
  refused(R"(, "tool_choice": {"type": "function", "function": {"name": "f"}})",
          "tool_choice: wanted \"none\" or \"auto\": this server has nothing else, got an object");
  refused(
      R"(, "function_call": {"name": "f"})",
      "function_call: wanted \"none\" or \"auto\": this server has nothing else, got an object");
  refused(R"(, "modalities": ["text", "audio"])",
          "modalities: wanted [\"text\"]: this server has nothing else, got a list");
  refused(R"(, "audio": {})", "audio: wanted none: this server has none of that, got an object");
  refused(R"(, "web_search_options": {})",
          "web_search_options: wanted none: this server has none of that, got an object");
  refused(R"(, "moderation": {"model": "m"})",
          "moderation: wanted none: this server has none of that, got an object");
  refused(R"(, "reasoning_effort": "high")",
          "reasoning_effort: wanted \"none\": this server has nothing else, got \"high\"");
  refused(R"(, "verbosity": "low")",
          "verbosity: wanted \"medium\": this server has nothing else, got \"low\"");
  refused(R"(, "n": 2, "best_of": 3)", "best_of: wanted an integer from 2 to 2, got 3");
  refused(R"(, "echo": true)", "echo: this server has no such field");
  refused(R"(, "prompt": "a")", "prompt: this server has no such field");
  refused(R"(, "top_logprobs": 2)",
          "logprobs: wanted true, since there is top_logprobs, got false");
  refused(R"(, "colour": "red")", "colour: this server has no such field");
  refused(R"(, "stream_options": {"x": 1})", "stream_options.x: this server has no such field");
  const auto wrong = [](const std::string& messages, const std::string& message) {
    CAPTURE(messages);
    REFUSES(read_api_request(Endpoint::chat_completions, R"({"messages": )" + messages + "}",
                             served().model),
            message);
  };
  wrong("[]", "messages: wanted a list of messages, got an empty list");
  wrong("null", "messages: wanted a list of messages, got null");
  wrong("[3]", "messages[0]: wanted an object, got 3");
  wrong(R"([{"role": "tool", "content": ""}])",
        "messages[0].role: wanted system, user or assistant, got \"tool\"");
  wrong(R"([{"role": "assistant", "content": null, "tool_calls": [{"id": "1"}]}])",
        "messages[0].tool_calls: wanted none: this server has none of that, got a list");
  wrong(R"([{"role": "assistant", "content": "", "refusal": "No."}])",
        "messages[0].refusal: wanted none: this server has none of that, got \"No.\"");
  wrong(R"([{"role": "user", "content": null}])", "messages[0].content: wanted a string, got none");
  wrong(R"([{"role": "user"}])", "messages[0].content: wanted a string, got none");
  wrong(R"([{"role": "user", "content": [{"type": "image_url"}]}])",
        "messages[0].content[0].type: wanted \"text\", got \"image_url\"");
  wrong(R"([{"role": "assistant", "content": "x"}])",
        "messages: wanted a user's message at the end, got \"assistant\"");
  REFUSES(served().go_on("{}"),
          "prompt: wanted a string, token ids, or a list of either, got null");
  REFUSES(served().go_on(R"({"prompt": []})"),
          "prompt: wanted a string, token ids, or a list of either, got an empty list");
  REFUSES(served().go_on(R"({"prompt": [[]]})"),
          "prompt: wanted a string, token ids, or a list of either, got an empty list");
  REFUSES(served().go_on(R"({"prompt": ["a", [1]]})"),
          "prompt: wanted strings, or lists of token ids, and not both, got a list");
  REFUSES(served().go_on(R"({"prompt": [1, "a"]})"), "prompt: wanted ids from 0 to 257, got \"a\"");
  REFUSES(served().go_on(R"({"prompt": [[1], [258]]})"),
          "prompt: wanted ids from 0 to 257, got 258");
  REFUSES(served().go_on(R"({"prompt": ["a")" +
                         [] {
                           std::string more;
                           for (int i = 0; i < 64; ++i) more += R"(, "a")";
                           return more;
                         }() +
                         "]}"),
          "prompt: wanted at most 64 prompts, got 65");
  REFUSES(served().go_on(R"({"prompt": "a", "suffix": "b"})"),
          "suffix: wanted none: this server has none of that, got \"b\"");
  REFUSES(served().go_on(R"({"prompt": [258]})"), "prompt: wanted ids from 0 to 257, got 258");
  REFUSES(served().go_on(R"({"prompt": [-1]})"), "prompt: wanted ids from 0 to 257, got -1");
}

TEST_CASE("a format of the answer becomes a filter of its tokens, or is refused") {
  const auto format = [](const std::string& more) {
    return served().chat(R"(, "response_format": )" + more).requests[0].filter;
  };
  CHECK_FALSE(format(R"({"type": "text"})"));
  const auto first = [&](const AnswerFilter& filter) {  // bytes that an answer may begin with
    Tensor<1> logits = xt::zeros<float>({258});
    filter({}, row(logits));
    std::string bytes;
    for (int id = 0; id < 258; ++id)
      if (logits(size_t(id)) == 0) bytes += id < 256 ? char(id) : '?';
    return bytes;
  };
  CHECK(first(format(R"({"type": "json_object"})")).find_first_not_of(" \t\r\n{") ==
        std::string::npos);
  const std::string schema =
      R"({"type": "json_schema", "json_schema": {"name": "n", "strict": true, "schema": )";
  CHECK(first(format(schema + R"({"enum": ["a", 7]}}})")).find_first_not_of(" \t\r\n\"7") ==
        std::string::npos);
  REFUSES(format(R"({"type": "xml"})"),
          "response_format.type: wanted text, json_object or json_schema, got \"xml\"");
  REFUSES(format(R"({"type": "json_schema"})"),
          "response_format.json_schema: wanted an object, got null");
  REFUSES(format(R"({"type": "json_schema", "json_schema": {}})"),
          "response_format.json_schema.schema: wanted a schema, got null");
}

TEST_CASE("by hand: penalties count the answer's tokens, and biases are added") {
  const auto filtered = [](const std::string& more, const Ids& answer) {
    Tensor<1> logits = xt::zeros<float>({258});
    const AnswerFilter filter = served().chat(more).requests[0].filter;
    if (filter) filter(answer, row(logits));
    return logits;
  };
  const Tensor<1> both = filtered(
      R"(, "presence_penalty": 0.5, "frequency_penalty": -0.25, "logit_bias": {"7": 3, "98": 1})",
      {97, 98, 97, 97});
  for (size_t id = 0; id < 258; ++id) {
    CAPTURE(id);
    CHECK(both(id) == (id == 97 ? 0.25f : id == 98 ? 0.75f : id == 7 ? 3 : 0));
  }
  CHECK(filtered("", {97})(97) == 0);
  // What a format forbids stays forbidden.
  const Tensor<1> json = filtered(
      R"(, "response_format": {"type": "json_object"}, "logit_bias": {"97": 100, "123": -2})", {});
  CHECK(json(97) == -std::numeric_limits<float>::infinity());
  CHECK(json('{') == -2);
}

TEST_CASE("an answer has the properties of its schema in the schema's order") {
  const AnswerFilter filter =
      served()
          .chat(R"(, "response_format": {"type": "json_schema", "json_schema": {"schema": {
              "type": "object", "required": ["reasoning", "answer"], "properties": {
              "reasoning": {"enum": [{"b": 1, "a": 2}]}, "answer": {"type": "integer"}}}}})")
          .requests[0]
          .filter;
  const std::string answer = R"({"reasoning":{"b":1,"a":2},"answer":4})";
  for (size_t n = 0; n < answer.size(); ++n) {
    CAPTURE(answer.substr(0, n));
    Tensor<1> logits = xt::zeros<float>({258});
    filter(Ids(answer.begin(), answer.begin() + long(n)), row(logits));
    CHECK(logits(size_t(answer[n])) == 0);  // a token is a byte
    if (logits(size_t(answer[n])) != 0) break;
  }
}

TEST_CASE("a body that is not JSON, or too deep, is refused before it is read") {
  const auto refused = [](const std::string& body, const std::string& begins) {
    CAPTURE(body.substr(0, 60));
    std::string said = "accepted";
    try {
      served().go_on(body);
    } catch (const std::invalid_argument& error) {
      said = error.what();
    }
    CHECK(said.substr(0, begins.size()) == begins);
  };
  for (const char* body : {"", "{", "{\"prompt\": \"\xFF\"}", "{\"prompt\": \"\\ud800\"}",
                           "{\"prompt\": 1e999}", "{} {}", "nul"})
    refused(body, "the body is not JSON: ");
  refused("[]", "the body: wanted an object, got an empty list");
  refused(std::string(100000, '['), "the body: wanted at most 64 levels");
  std::string deep = "{\"prompt\": ";
  for (int i = 0; i < 500; ++i) deep += "{\"a\": ";
  refused(deep, "the body: wanted at most 64 levels");
  std::string brackets = "{\"prompt\": \"\\\"";  // in a string they nest nothing
  brackets += std::string(500, '[') + "\"}";
  CHECK(served().go_on(brackets).requests[0].prompt.size() == 501);
  const auto names = [](size_t count) {
    std::string object;
    for (size_t i = 0; i < count; ++i)
      object += (i > 0 ? ", \"" : "\"") + std::to_string(i) + "\": {}";
    return "{" + object + "}";
  };
  refused(R"({"prompt": "a", "metadata": [)" + names(1000) + ", " + names(1000) + "]}", "accepted");
  refused(R"({"prompt": "a", "metadata": [{"b": {}}, )" + names(1001) + "]}",
          "the body: wanted at most 1000 names in an object");
  // With a callback of the parser's, a list of 1 MiB took minutes; an ordered object of 1 MiB took
  // some ten seconds.
  std::string list = "[{}", object = "{\"k\": 1";
  while (list.size() < 1000000) list += ",{}";
  for (int i = 0; object.size() < 1000000; ++i) object += ",\"k" + std::to_string(i) + "\":1";
  list += "]", object += "}";
  const std::string schema = R"({"prompt": "a", "response_format": {"type": "json_schema",
                                "json_schema": {"schema": {"properties": )";
  refused("{\"prompt\": \"a\", \"x\": " + list + "}", "x: this server has no such field");
  refused("{\"x\": " + object + "}", "the body: wanted at most 1000 names in an object");
  refused(schema + list + "}}}}", "response_format: schema /properties: ");
  refused(schema + object + "}}}}", "the body: wanted at most 1000 names in an object");
}

TEST_CASE("whole replies: text, reason, log-probabilities and counts") {
  ApiRequest api_request = served().chat(R"(, "n": 2, "logprobs": true, "top_logprobs": 1)");
  Reply reply(api_request, served().model, 3, 0x65);
  const TokenLogprobs logprobs{{'b', -1.5}, {{0xC3, -std::numeric_limits<double>::infinity()}}};
  reply.add({0, "a"}), reply.add({1, "x"});
  reply.add({0, "b", logprobs});
  reply.add({0, "", {}, "stop"}), reply.add({1, "", {}, "length"});
  const json got = json::parse(reply.whole(5));
  CHECK(got["id"] == "chatcmpl-65-3");
  CHECK(got["object"] == "chat.completion");
  CHECK(got["model"] == "tiny");
  CHECK(got["choices"][0]["message"]["content"] == "ab");
  CHECK(got["choices"][0]["message"]["role"] == "assistant");
  CHECK(got["choices"][0]["finish_reason"] == "stop");
  const json& token = got["choices"][0]["logprobs"]["content"][0];
  CHECK(token["token"] == "b");
  CHECK(token["logprob"] == -1.5);
  CHECK(token["top_logprobs"][0]["token"] == "\uFFFD");  // a byte that is no character
  CHECK(token["top_logprobs"][0]["bytes"] == json{0xC3});
  CHECK(token["top_logprobs"][0]["logprob"] == -9999);
  CHECK(got["choices"][1]["index"] == 1);
  CHECK(got["choices"][1]["message"]["content"] == "x");
  CHECK(got["choices"][1]["finish_reason"] == "length");
  CHECK(got["usage"] == json{{"prompt_tokens", api_request.requests[0].prompt.size()},
                             {"completion_tokens", 5},
                             {"total_tokens", api_request.requests[0].prompt.size() + 5}});

  ApiRequest text = served().go_on(R"({"prompt": "ab", "echo": true, "logprobs": 1})");
  Reply of_text(text, served().model, 0, 0);
  of_text.add({0, "b", TokenLogprobs{{'b', -0.5}, {{'c', -0.25}}}, "length"});
  const json whole = json::parse(of_text.whole(1));
  CHECK(whole["object"] == "text_completion");
  CHECK(whole["choices"][0]["text"] == "abb");
  CHECK(whole["choices"][0]["logprobs"]["tokens"] == json{"b"});
  CHECK(whole["choices"][0]["logprobs"]["token_logprobs"] == json{-0.5});
  CHECK(whole["choices"][0]["logprobs"]["top_logprobs"][0]["c"] == -0.25);
  CHECK(whole["choices"][0]["logprobs"]["top_logprobs"][0]["b"] == -0.5);  // always there
}

TEST_CASE("a completion's lists: names of parts of characters, and offsets in the text") {
  ApiRequest api_request = served().go_on(R"({"prompt": ["é", "xyz"], "n": 2, "logprobs": 2})");
  Reply reply(api_request, served().model, 0, 0);
  const TokenLogprobs first{{0xC3, -1}, {{0xE2, -0.5}, {0xC3, -1}}}, second{{0xA9, -2}, {}};
  reply.add({.answer = 2, .text = "", .logprobs = first, .offset = 0});
  reply.add({.answer = 2, .text = "é", .logprobs = second, .offset = 1});
  reply.add({.answer = 1, .text = "a", .logprobs = TokenLogprobs{{'a', -3}, {}}, .offset = 4});
  const json choices = json::parse(reply.whole(2))["choices"];
  REQUIRE(choices.size() == 4);
  CHECK(choices[2]["index"] == 2);
  const json lists = choices[2]["logprobs"];
  CHECK(lists["tokens"] == json{"bytes:\\xc3", "bytes:\\xa9"});
  CHECK(lists["top_logprobs"][0] == json{{"bytes:\\xe2", -0.5}, {"bytes:\\xc3", -1.0}});
  CHECK(lists["top_logprobs"][1] == json{{"bytes:\\xa9", -2.0}});
  CHECK(lists["text_offset"] == json{3, 4});  // after the three characters of its prompt
  CHECK(choices[1]["logprobs"]["text_offset"] == json{5});
}

TEST_CASE("a prompt that is echoed has log-probabilities from its second token on") {
  ApiRequest api_request = served().go_on(
      R"({"prompt": "éa", "echo": true, "logprobs": 1, "max_tokens": 1, "stream": true})");
  CHECK(api_request.requests[0].wants_prompt_logits);
  CHECK_FALSE(served().go_on(R"({"prompt": "a", "echo": true})").requests[0].wants_prompt_logits);
  CHECK_FALSE(served().go_on(R"({"prompt": "a", "logprobs": 1})").requests[0].wants_prompt_logits);
  const std::vector<TokenLogprobs> prompt = {{{0xA9, -1}, {}}, {{'a', -2}, {{'b', -0.5}}}};
  const AnswerDelta chunk{.answer = 0,
                          .text = "c",
                          .logprobs = TokenLogprobs{{'c', -3}, {}},
                          .reason = "length",
                          .prompt = prompt};
  Reply reply(api_request, served().model, 0, 0);
  CHECK(reply.stream_begin().empty());
  const std::string events = reply.stream_piece(chunk);
  const size_t middle = events.find("\n\n") + 2;
  const json echoed = json::parse(events.substr(6, middle - 8))["choices"][0];
  const json own = json::parse(events.substr(middle + 6))["choices"][0];
  reply.add(chunk);
  const json whole = json::parse(reply.whole(1))["choices"][0];
  CHECK(whole["text"] == "éac");
  const json lists = whole["logprobs"];
  CHECK(lists["tokens"] == json{"bytes:\\xc3", "bytes:\\xa9", "a", "c"});
  CHECK(lists["token_logprobs"] == json{nullptr, -1.0, -2.0, -3.0});
  CHECK(lists["top_logprobs"][0].is_null());
  CHECK(lists["top_logprobs"][2] == json{{"b", -0.5}, {"a", -2.0}});
  CHECK(lists["text_offset"] == json{0, 1, 1, 2});
  CHECK(echoed["text"] == "éa");
  CHECK(own["text"] == "c");
  for (const auto& [name, list] : lists.items()) {
    json both = echoed["logprobs"][name];
    for (const json& one : own["logprobs"][name]) both.push_back(one);
    CHECK(both == list);
  }
}

TEST_CASE("a stream's events, each with what it adds") {
  ApiRequest api_request =
      served().chat(R"(, "stream": true, "stream_options": {"include_usage": true})");
  const Reply reply(api_request, served().model, 0, 0);
  const auto event = [](const std::string& text) {
    CHECK(text.starts_with("data: "));
    CHECK(text.ends_with("\n\n"));
    return json::parse(text.substr(6))["choices"][0];
  };
  CHECK(event(reply.stream_begin())["delta"] == json{{"role", "assistant"}, {"content", ""}});
  const json chunk = event(reply.stream_piece({0, "é"}));
  CHECK(chunk["delta"] == json{{"content", "é"}});
  CHECK(chunk["finish_reason"].is_null());
  CHECK(reply.stream_piece({0, ""}).empty());
  const json last = event(reply.stream_piece({0, "", {}, "stop"}));
  CHECK(last["delta"] == json::object());
  CHECK(last["finish_reason"] == "stop");
  const std::string end = reply.stream_end(4);
  CHECK(end.ends_with("data: [DONE]\n\n"));
  CHECK(json::parse(end.substr(6, end.find("\n\n") - 6))["usage"]["completion_tokens"] == 4);

  CHECK(reply.stream_begin().find("\"usage\":null") != std::string::npos);
  api_request.usage_at_end = false;
  CHECK(reply.stream_begin().find("usage") == std::string::npos);
  CHECK(reply.stream_end(4) == "data: [DONE]\n\n");
  CHECK(json::parse(error_json(429, "too \"many\""))["error"]["type"] == "rate_limit_error");
  CHECK(json::parse(models_json(served().model))["data"][0]["id"] == "tiny");
  CHECK(metrics_text({.sequences = 3})
            .find("# TYPE t2t_sequences_total counter\nt2t_sequences_total 3\n") !=
        std::string::npos);
}

}  // namespace t2t::api_test
