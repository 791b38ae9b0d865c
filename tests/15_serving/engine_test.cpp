// What must be true of the engine with a model: every sequence gets the same bits as alone.
#include "15_serving/engine/engine.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "09_language_model/language_model.hpp"
#include "12_quantization/packed/packed_weight.hpp"
#include "13_training/differences.hpp"
#include "15_serving/products/batch_invariant.hpp"
#include "15_serving/products/matrices_as.hpp"
#include "15_serving/shows/toy_runner.hpp"
#include "15_serving/some_request.hpp"
#include "linalg.hpp"
#include "rows.hpp"
#include "support/all_close.hpp"
#include "support/lists.hpp"
#include "support/refuses.hpp"

namespace t2t::engine_test {

using std::size_t;

/// A small model whose matrices are as `form` makes them of floats.
static Model small_model(const std::function<Weight(Tensor<2>)>& form) {
  Config config{.block = llama_style(64, 4, 2, 96), .L = 2, .V = 96, .T_max = 300};
  const auto larger = [&](const Tensor<2>& floats) { return form(Tensor<2>(floats * 4.0f)); };
  Random random(3);
  return Model(config, matrices_as(larger, draw_model(config, random), config));
}
struct Form {
  const char* name;
  std::function<Weight(Tensor<2>)> of;
  size_t bits = 32;  // of a key or value
  size_t swap = 0;   // pages of preempted sequences that are copied
};
static std::vector<Form> forms() {
  const auto packed = [](TensorType type) {
    return [type](const Tensor<2>& floats) { return packed_floats(type, floats); };
  };
  return {{"floats, batch-invariant", batch_invariant},
          {"Q8_0", packed(TensorType::q8_0), 32, 5},
          {"Q4_0", packed(TensorType::q4_0)},
          {"Q8_0, with keys and values of 8 bits", packed(TensorType::q8_0), 8, 9},
          {"Q8_0, with keys and values of 4 bits", packed(TensorType::q8_0), 4}};
}

/// All logits of each sequence, in the order of its tokens, and what it says.
struct Heard {
  std::map<size_t, std::vector<float>> logits;
  std::map<size_t, Ids> said;
  std::map<size_t, Ending> ended;
  std::map<size_t, std::string> errors;
};
static void hear(Engine& engine, Heard& heard) {
  engine.on_logits = [&](size_t id, ConstRow logits) {
    std::vector<float>& all = heard.logits[id];
    all.insert(all.end(), logits.begin(), logits.end());
  };
  for (const Event& event : engine.step()) {
    if (event.token) heard.said[event.id].push_back(*event.token);
    if (event.ending) heard.ended[event.id] = *event.ending;
    if (!event.error.empty()) heard.errors[event.id] = event.error;
  }
}
/// What a step throws, or an empty sequence.
static std::string hear_or_why(Engine& engine, Heard& heard) {
  try {
    hear(engine, heard);
    return "";
  } catch (const std::exception& error) {
    return error.what();
  }
}
static Heard alone(const Model& model, const Request& request, const EngineOptions& options) {
  Engine engine(model_runner(model, options));
  engine.submit(request);
  Heard heard;
  for (size_t step = 0; !engine.idle() && step < 2000; ++step) hear(engine, heard);
  CHECK(engine.idle());
  return heard;
}

TEST_CASE(
    "64 texts served together: the logits of each are those that it gets alone, bit for bit") {
  // 14 pages of 8 tokens for five sequences: some must stop, and are computed again or swapped.
  EngineOptions options{.pages = 14, .page_size = 8, .sequences = 5, .budget = 23};
  EngineOptions roomy{.pages = 40, .page_size = 16, .sequences = 1, .budget = 64};
  const int threads = int(thread_count());
  for (const Form& form : forms()) {
    CAPTURE(form.name);
    const Model model = small_model(form.of);
    options.bits = roomy.bits = form.bits, options.swap = form.swap;
    Engine engine(model_runner(model, options));
    Heard heard;
    size_t stops = 0, swapped = 0;
    for (size_t step = 0, i = 0; (i < 64 || !engine.idle()) && step < 4000; ++step) {
      set_threads(step % 2 == 0 ? threads : 1);
      if (i < 64 && step % 2 == 0) engine.submit(some_request(i++));
      if (i == 40 && step % 2 == 0) engine.cancel(38);
      const std::string broken = hear_or_why(engine, heard);
      CHECK(broken == "");
      if (!broken.empty()) break;
      stops += engine.plan().preempted.size();
      for (const Sequence& sequence : engine.waiting()) swapped += !sequence.swapped.empty();
    }
    set_threads(threads);
    CHECK(engine.idle());
    CHECK(stops > 0);
    CHECK((swapped > 0) == (form.swap > 0));
    CHECK(heard.ended.size() == 63);
    CHECK(engine.pool().free() + engine.tree().evictable() == 14);
    for (size_t i = 0; i < 64; ++i) {
      if (i == 38) continue;
      CAPTURE(i);
      Heard want = alone(model, some_request(i), roomy);
      CHECK(heard.said[i] == want.said[0]);
      CHECK((heard.logits[i] == want.logits[0]));
      CHECK(heard.ended[i] == want.ended[0]);
    }
  }
}

TEST_CASE("a text without a next token ends with the reason, and the others do not notice") {
  const Model model = small_model(batch_invariant);
  const EngineOptions options{.pages = 30, .page_size = 8, .sequences = 3, .budget = 64};
  ModelRunner runner = model_runner(model, options);
  runner.run = [run = runner.run](std::span<const Chunk> chunks, Matrix logits) {
    run(chunks, logits);
    size_t row = 0;
    for (const Chunk& chunk : chunks) {
      if (chunk.wanted == 0) continue;
      // The second sequence's third token.
      if (chunk.sequence == 1 &&
          chunk.position + chunk.ids.size() == some_request(1).prompt.size() + 2)
        logits.row(row)[5] = std::numeric_limits<float>::quiet_NaN();
      ++row;
    }
  };
  Engine engine(runner);
  for (const size_t i : {0, 1, 2}) {
    Request request = some_request(i);
    request.max_new_tokens = 6;
    engine.submit(request);
  }
  Heard heard;
  for (size_t step = 0; !engine.idle() && step < 100; ++step) CHECK_NOTHROW(hear(engine, heard));
  CHECK(engine.idle());
  CHECK(heard.errors.size() == 1);
  CHECK(heard.errors[1] == "logits: wanted numbers below infinity, got nan for token 5");
  CHECK(heard.said[1].size() == 2);
  CHECK_FALSE(heard.ended.contains(1));
  CHECK(engine.pool().free() + engine.tree().evictable() == 30);
  for (const size_t i : {0, 2}) {
    Request request = some_request(i);
    request.max_new_tokens = 6;
    CHECK(heard.said[i] == alone(model, request, options).said[0]);
  }
}

TEST_CASE("while a text is answered, another's prompt comes in small chunks") {
  const EngineOptions options{
      .pages = 40, .page_size = 4, .sequences = 3, .budget = 24, .max_prefill_tokens = 5};
  Engine engine(toy_runner(options, 10));
  using Parts = std::vector<StepPlan::Part>;
  const size_t first = engine.submit({.prompt = {1, 2, 3}, .max_new_tokens = 50});
  engine.step();
  const size_t other = engine.submit({.prompt = Ids(60, 4), .max_new_tokens = 50});
  for (int i = 0; i < 3; ++i) {
    engine.step();
    CHECK(engine.plan().parts == Parts{{first, 1}, {other, 5}});
  }
  engine.cancel(first);
  engine.step();
  CHECK(engine.plan().parts == Parts{{other, 24}});
  // Three sequences always find room for a token each.
  const size_t third = engine.submit({.prompt = {1, 2, 3}, .max_new_tokens = 50});
  engine.step();  // the rest of the 60
  CHECK(engine.plan().parts == Parts{{other, 21}, {third, 3}});
  Engine narrow(toy_runner(
      {.pages = 40, .page_size = 4, .sequences = 8, .budget = 24, .max_prefill_tokens = 2}, 10));
  narrow.submit({.prompt = {1}, .max_new_tokens = 50});
  narrow.step();
  narrow.submit({.prompt = Ids(60, 4), .max_new_tokens = 50});
  narrow.step();
  CHECK(narrow.plan().parts == Parts{{0, 1}, {1, 7}});
}

TEST_CASE("a filter sees the answer so far, and forbids tokens") {
  const Model model = small_model(batch_invariant);
  const EngineOptions options{.pages = 6, .page_size = 4, .sequences = 2, .budget = 9};
  Engine engine(model_runner(model, options));
  Request counted = some_request(1);
  counted.max_new_tokens = 5;
  counted.filter = [](std::span<const int> answer, Row logits) {
    for (size_t id = 0; id < logits.size(); ++id)
      if (id != 10 + answer.size()) logits[id] = -std::numeric_limits<float>::infinity();
  };
  engine.submit(counted);
  counted.filter = [filter = counted.filter](std::span<const int> answer, Row logits) {
    if (answer.size() == 2) throw std::runtime_error("no more");
    filter(answer, logits);
  };
  engine.submit(counted);
  counted.filter = [](std::span<const int>, Row) { throw std::bad_alloc(); };
  engine.submit(counted);
  Heard heard;
  for (size_t step = 0; !engine.idle() && step < 100; ++step) hear(engine, heard);
  CHECK(heard.said[0] == Ids{10, 11, 12, 13, 14});
  CHECK(heard.ended[0] == Ending::most_tokens);
  CHECK(heard.said[1] == Ids{10, 11});
  CHECK(heard.errors[1] == "no more");
  CHECK(heard.errors[2] == "there is not enough memory");
}

TEST_CASE("the logits are those of the formula") {
  const Model model = small_model([](Tensor<2> floats) { return Weight(std::move(floats)); });
  const EngineOptions options{.pages = 20, .page_size = 4, .sequences = 2, .budget = 7};
  const Request request = some_request(3);
  const Heard heard = alone(model, request, options);
  Ids ids = request.prompt;
  const Ids& said = heard.said.at(0);
  ids.insert(ids.end(), said.begin(), said.end() - 1);
  const Tensor<2> all = language_model(ids, model);  // [T, V]
  const size_t first = request.prompt.size() - 1;
  for (size_t i = 0; i < said.size(); ++i) {
    CAPTURE(i);
    Tensor<2> got = empty(1, 96);
    std::copy_n(heard.logits.at(0).begin() + long(i * 96), 96, got.data());
    // Logits of up to 8; a sum of n products keeps √n roundings, and two blocks have some twenty.
    CHECK(all_close(got, rows_of(all, first + i, 1), 0x1p-24 * 8 * 20 * 10));
  }
}

/// What a prompt's tokens are handed with: each token, and the likeliest one before it.
using Handed = std::vector<std::pair<int, int>>;

TEST_CASE("the logits before a prompt's tokens are handed on, in order and once each") {
  size_t in_mid_prompt = 0;
  for (const size_t swap : {0, 6}) {
    CAPTURE(swap);
    const EngineOptions options{
        .pages = 14, .page_size = 8, .sequences = 5, .budget = 23, .swap = swap};
    Engine engine(toy_runner(options, 96));
    std::map<size_t, Handed> handed;
    engine.on_prompt_logits = [&](size_t id, int token, ConstRow logits) {
      handed[id].emplace_back(token, int(std::ranges::max_element(logits) - logits.begin()));
    };
    const auto request_for = [](size_t i) {
      Request request = some_request(i);
      request.sampling.temperature = 0, request.max_new_tokens = i % 4 == 0 ? 0 : 30;
      request.wants_prompt_logits = i % 5 != 1;
      request.drafter = toy_drafter(96, 20), request.max_drafts = 3;
      return request;
    };
    Heard heard;
    for (size_t step = 0, i = 0; (i < 64 || !engine.idle()) && step < 4000; ++step) {
      if (i < 64 && step % 2 == 0) engine.submit(request_for(i++));
      hear(engine, heard);
      for (const Sequence& sequence : engine.waiting())
        in_mid_prompt += sequence.prompt_logits_sent > 0 && sequence.needs_prompt_logits();
    }
    CHECK(engine.idle());
    CHECK(engine.pool().free() + engine.tree().evictable() == 14);
    for (size_t i = 0; i < 64; ++i) {
      CAPTURE(i);
      const Request request = request_for(i);
      Handed want;
      Ids tokens;
      for (const int token : request.prompt) {
        if (!tokens.empty() && request.wants_prompt_logits)
          want.emplace_back(token, toy_answer(tokens, 96));
        tokens.push_back(token);
      }
      CHECK(handed[i] == want);
      const size_t prompt = tokens.size();
      while (tokens.size() < prompt + request.max_new_tokens)
        tokens.push_back(toy_answer(tokens, 96));
      CHECK(heard.said[i] == Ids(tokens.begin() + long(prompt), tokens.end()));
      CHECK(heard.ended.at(i) == Ending::most_tokens);
    }
  }
  CHECK(in_mid_prompt > 0);
}

TEST_CASE(
    "the logits before a prompt's tokens are those of the formula, also of one known already") {
  const Model model = small_model([](Tensor<2> floats) { return Weight(std::move(floats)); });
  Engine engine(model_runner(model, {.pages = 40, .page_size = 4, .sequences = 2, .budget = 7}));
  Request request = some_request(3);
  const Tensor<2> all = language_model(request.prompt, model);  // [T, V]
  request.max_new_tokens = 0, request.wants_prompt_logits = true;
  const size_t T = request.prompt.size();
  for (int again = 0; again < 2; ++again) {
    std::vector<float> logits;
    engine.on_prompt_logits = [&](size_t, int, ConstRow row) {
      logits.insert(logits.end(), row.begin(), row.end());
    };
    engine.submit(request);
    Heard heard;
    for (size_t step = 0; !engine.idle() && step < 100; ++step) hear(engine, heard);
    CHECK(heard.said.empty());
    REQUIRE(logits.size() == (T - 1) * 96);
    Tensor<2> got = empty(T - 1, 96);
    std::ranges::copy(logits, got.data());
    // As in "the logits are those of the formula".
    CHECK(all_close(got, rows_of(all, 0, T - 1), 0x1p-24 * 8 * 20 * 10));
  }
}

TEST_CASE("what is thrown for a prompt's logits becomes the text's error") {
  Engine engine(toy_runner({.pages = 14, .page_size = 8, .sequences = 5, .budget = 23}, 96));
  engine.on_prompt_logits = [](size_t, int, ConstRow) { throw std::runtime_error("no more"); };
  Request request = some_request(2);
  engine.submit(request);
  request.wants_prompt_logits = true;
  engine.submit(request);
  Heard heard;
  for (size_t step = 0; !engine.idle() && step < 100; ++step) hear(engine, heard);
  CHECK(heard.errors == std::map<size_t, std::string>{{1, "no more"}});
  CHECK(heard.ended.contains(0));
}

TEST_CASE("a text ends by a stop token, by its limit, or at the end of the context") {
  const Model model = small_model(batch_invariant);
  const EngineOptions options{.pages = 10, .page_size = 4, .sequences = 1, .budget = 16};
  Request request = some_request(1);
  request.max_new_tokens = 6, request.sampling.temperature = 0;
  const Heard heard = alone(model, request, options);
  CHECK(heard.said.at(0).size() == 6);
  CHECK(heard.ended.at(0) == Ending::most_tokens);
  request.stop_tokens = {heard.said.at(0)[2]};
  size_t before = 0;
  while (heard.said.at(0)[before] != request.stop_tokens[0]) ++before;
  const Heard stopped = alone(model, request, options);
  CHECK(stopped.ended.at(0) == Ending::stop_token);
  CHECK((before == 0 ? !stopped.said.contains(0) : stopped.said.at(0).size() == before));
  request.stop_tokens = {}, request.max_new_tokens = 1000;
  const Heard full = alone(model, request, options);
  CHECK(full.ended.at(0) == Ending::context_full);
  CHECK(request.prompt.size() + full.said.at(0).size() == 40);
}

TEST_CASE("an engine refuses what can't be a text, by the name of what is wrong") {
  const Model model = small_model(batch_invariant);
  const EngineOptions options{.pages = 10, .page_size = 4, .sequences = 1, .budget = 16};
  Engine engine(model_runner(model, options));
  const auto refused = [&](Request request, const char* message) {
    REFUSES(engine.submit(std::move(request)), message);
    CHECK(engine.idle());
  };
  refused({}, "tokens of the prompt: wanted at least 1, got 0");
  refused({.prompt = Ids(40, 1)},
          "tokens of the prompt: wanted below the 40 that a sequence can have, got 40");
  refused({.prompt = {1, 96}}, "an id of the prompt: wanted 0 to 95, got 96");
  refused({.prompt = {-1}}, "an id of the prompt: wanted 0 to 95, got -1");
  refused({.prompt = {1}, .stop_tokens = {96}}, "a stop token: wanted 0 to 95, got 96");

  refused({.prompt = {1}, .sampling = {.temperature = -1}},
          "temperature: wanted 0 (greedy) or above, got -1");
  CHECK_FALSE(engine.cancel(0));
  CHECK(engine.step().empty());
}

TEST_CASE("a runner refuses options by their names, before it asks for the pages' memory") {
  const Model model = small_model(batch_invariant);
  const std::size_t pages = std::size_t(1) << 40;
  REFUSES(model_runner(model, {.pages = pages, .budget = 0}),
          "chunk, the rows of a pass: wanted at least 1, got 0");
  REFUSES(model_runner(model, {.pages = pages, .sequences = 0}),
          "sequences: wanted at least 1, got 0");
  REFUSES(model_runner(model, {.pages = 0}),
          "S, the positions to make room for: wanted 1 to T_max = 300, got 0");
}

}  // namespace t2t::engine_test
