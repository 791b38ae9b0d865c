// What must be true of an engine with drafts: every sequence gets the tokens and the bits that it
// gets without.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "12_quantization/packed/packed_weight.hpp"
#include "15_serving/engine/engine.hpp"
#include "15_serving/products/batch_invariant.hpp"
#include "15_serving/products/matrices_as.hpp"
#include "15_serving/shows/toy_runner.hpp"
#include "15_serving/some_request.hpp"
#include "support/lists.hpp"
#include "support/refuses.hpp"

namespace t2t::speculation_test {

using std::size_t;

static Model small_model(bool packed) {
  const Config config{.block = llama_style(64, 4, 2, 96), .L = 2, .V = 96, .T_max = 300};
  const auto form = [&](const Tensor<2>& floats) {
    Tensor<2> larger = floats * 4.0f;
    return packed ? packed_floats(TensorType::q8_0, larger) : batch_invariant(std::move(larger));
  };
  Random random(3);
  return Model(config, matrices_as(form, draw_model(config, random), config));
}

/// What a sequence says, its logits, and how it ends.
struct HeardText {
  Ids said;
  std::vector<float> logits;
  std::optional<Ending> ended;
  std::string error;
};
/// The sequences of all requests, and how many drafts were accepted and rejected.
struct Served {
  std::map<size_t, HeardText> heard;
  size_t steps = 0, accepted = 0, rejected = 0, stops = 0;
  size_t left_over = 0;  // pages that are free afterwards, or can be made free
};
static Served serve(const ModelRunner& runner, const std::vector<Request>& requests,
                    size_t steps_between = 0) {
  Engine engine(runner);
  Served served;
  engine.on_logits = [&](size_t id, ConstRow logits) {
    std::vector<float>& all = served.heard[id].logits;
    all.insert(all.end(), logits.begin(), logits.end());
  };
  size_t next = 0;
  for (; (next < requests.size() || !engine.idle()) && served.steps < 4000; ++served.steps) {
    while (next < requests.size() && next * steps_between <= served.steps)
      engine.submit(requests[next++]);
    for (const Event& event : engine.step()) {
      HeardText& heard = served.heard[event.id];
      if (event.token) heard.said.push_back(*event.token);
      if (event.ending) heard.ended = event.ending;
      if (!event.error.empty()) heard.error = event.error;
    }
    for (const SequenceStep& part : engine.sequence_steps())
      served.accepted += part.accepted, served.rejected += part.drafted - part.accepted;
    served.stops += engine.plan().preempted.size();
  }
  CHECK(engine.idle());
  served.left_over = engine.pool().free() + engine.tree().evictable();
  return served;
}
static HeardText alone(const ModelRunner& runner, Request request) {
  request.drafter = {};
  return serve(runner, {request}).heard[0];
}

/// Drafts of a sequence whose tokens are known. Every `wrong`-th of its places is drafted wrong; 0:
/// none.
static Drafter of_known(Ids all, size_t wrong) {
  return [all, wrong](std::span<const int> tokens, size_t k) {
    Ids drafts;
    for (size_t i = tokens.size(); i < all.size() && drafts.size() < k; ++i)
      drafts.push_back(wrong > 0 && i % wrong == 0 ? (all[i] + 1) % 96 : all[i]);
    return drafts;
  };
}

TEST_CASE("64 texts served together with drafts, right and wrong: the bits of each are as alone") {
  // 14 pages of 8 tokens for five sequences: some must stop and be computed again.
  const EngineOptions options{.pages = 14, .page_size = 8, .sequences = 5, .budget = 23};
  const EngineOptions roomy{.pages = 40, .page_size = 16, .sequences = 1, .budget = 64};
  for (const bool packed : {false, true}) {
    CAPTURE(packed);
    const Model model = small_model(packed);
    std::vector<Request> requests;
    std::vector<HeardText> want;
    for (size_t i = 0; i < 64; ++i) {
      Request request = some_request(i);
      want.push_back(alone(model_runner(model, roomy), request));
      Ids all = request.prompt;
      all.insert(all.end(), want[i].said.begin(), want[i].said.end());
      if (i % 4 > 0) request.drafter = of_known(all, i % 4 == 1 ? 0 : i % 4);
      request.max_drafts = 1 + i % 5;
      requests.push_back(request);
    }
    Served got = serve(model_runner(model, options), requests, 2);
    CHECK(got.accepted > 80);
    CHECK(got.rejected > 40);
    CHECK(got.stops > 0);
    CHECK(got.left_over == 14);
    for (size_t i = 0; i < 64; ++i) {
      CAPTURE(i);
      CHECK(got.heard[i].said == want[i].said);
      CHECK((got.heard[i].logits == want[i].logits));
      CHECK(got.heard[i].ended == want[i].ended);
    }
  }
}

static const size_t V = 96;

TEST_CASE("right drafts make a step bring several tokens, wrong ones take nothing away") {
  const EngineOptions options{.pages = 20, .page_size = 4, .sequences = 1, .budget = 16};
  Request request{.prompt = {1, 2, 3}, .max_new_tokens = 31, .sampling = {.temperature = 0}};
  const Ids said = alone(toy_runner(options, V), request).said;
  request.max_drafts = 4;
  const auto served = [&](size_t wrong) {
    request.drafter = toy_drafter(V, wrong);
    Served got = serve(toy_runner(options, V), {request});
    CHECK(got.heard[0].said == said);
    CHECK(got.heard[0].ended == Ending::most_tokens);
    CHECK(got.left_over == 20);
    return got;
  };
  // The prompt brings the first token, and each step after it five.
  CHECK(served(0).steps == 7);
  CHECK(served(0).accepted == 24);
  CHECK(served(0).rejected == 0);
  CHECK(served(100).steps == 31);
  CHECK(served(100).accepted == 0);
  CHECK(served(100).rejected > 100);
}

TEST_CASE("a stop token, the limit and the end of the context hold among accepted drafts") {
  const EngineOptions options{.pages = 6, .page_size = 4, .sequences = 1, .budget = 16};
  const ModelRunner runner = toy_runner(options, V);
  Request request{.prompt = {5, 6, 7}, .max_new_tokens = 40, .sampling = {.temperature = 0}};
  request.drafter = toy_drafter(V, 0), request.max_drafts = 5;
  const HeardText full = serve(runner, {request}).heard[0];
  CHECK(full.ended == Ending::context_full);
  CHECK(full.said.size() == 21);
  CHECK(full.said == alone(runner, request).said);
  for (size_t most = 1; most <= 12; ++most) {
    CAPTURE(most);
    request.max_new_tokens = most, request.stop_tokens = {};
    const HeardText limited = serve(runner, {request}).heard[0];
    CHECK(limited.ended == Ending::most_tokens);
    CHECK(limited.said == Ids(full.said.begin(), full.said.begin() + long(most)));
    // The stop is the token at this place, or an equal one before it.
    request.max_new_tokens = 40, request.stop_tokens = {full.said[most]};
    const HeardText stopped = serve(runner, {request}).heard[0];
    const auto first = std::ranges::find(full.said, request.stop_tokens[0]);
    CHECK(stopped.ended == Ending::stop_token);
    CHECK(stopped.said == Ids(full.said.begin(), first));
  }
}

TEST_CASE("a filter holds among accepted drafts, and sees the answer grow token by token") {
  const EngineOptions options{.pages = 10, .page_size = 4, .sequences = 1, .budget = 16};
  Request request{.prompt = {5, 6, 7}, .max_new_tokens = 9, .sampling = {.temperature = 0}};
  std::vector<size_t> sizes_seen;
  request.filter = [&](std::span<const int> answer, Row logits) {
    sizes_seen.push_back(answer.size());
    for (size_t id = 0; id < logits.size(); ++id)
      if (id != 20 + answer.size()) logits[id] = -1e30f;
  };
  request.drafter = of_known({5, 6, 7, 20, 21, 22, 23, 24, 25, 50, 27, 28}, 0);
  Served got = serve(toy_runner(options, V), {request});
  CHECK(got.heard[0].said == Ids{20, 21, 22, 23, 24, 25, 26, 27, 28});
  CHECK(sizes_seen == std::vector<size_t>{0, 1, 2, 3, 4, 5, 6, 7, 8});
  CHECK(got.accepted == 5);
  CHECK(got.rejected == 2);
}

TEST_CASE(
    "rejected drafts over a page's end: their pages are free again, and no kept one changes") {
  for (const size_t page_size : {4, 2, 1}) {
    CAPTURE(page_size);
    const EngineOptions options{
        .pages = 48 / page_size, .page_size = page_size, .sequences = 2, .budget = 16};
    ModelRunner runner = toy_runner(options, V);
    const Engine* watched = nullptr;
    size_t writes_to_kept = 0;
    runner.run = [&, run = runner.run](std::span<const Chunk> chunks, Matrix logits) {
      const std::vector<size_t> kept = watched->tree().pages();
      for (const Chunk& chunk : chunks)
        for (size_t i = 0; i < chunk.ids.size(); ++i)
          writes_to_kept +=
              std::ranges::count(kept, chunk.table[(chunk.position + i) / page_size]) > 0;
      run(chunks, logits);
    };
    Engine engine(runner);
    watched = &engine;
    Request request{
        .prompt = {1, 2, 3, 4, 5}, .max_new_tokens = 14, .sampling = {.temperature = 0}};
    const Ids said = alone(toy_runner(options, V), request).said;
    request.drafter = toy_drafter(V, 50), request.max_drafts = 5;
    engine.submit(request), engine.submit(request);
    size_t crossed = 0, wrong_tables = 0;
    std::map<size_t, Ids> heard;
    for (size_t step = 0; !engine.idle() && step < 100; ++step) {
      for (const Event& event : engine.step())
        if (event.token) heard[event.id].push_back(*event.token);
      for (const Sequence& sequence : engine.running())
        wrong_tables += sequence.table.size() != (sequence.computed + page_size - 1) / page_size;
      for (const SequenceStep& part : engine.sequence_steps())
        crossed += part.drafted > part.accepted + page_size;
    }
    CHECK(crossed > 0);
    CHECK(wrong_tables == 0);
    CHECK(writes_to_kept == 0);
    CHECK(heard[0] == said);
    CHECK(heard[1] == said);
    // What the tree keeps are the tokens of the sequence: a third sequence finds them, and says the
    // same.
    Ids longer = request.prompt;
    longer.insert(longer.end(), said.begin(), said.end());
    CHECK(engine.tree().find(longer).size() == (longer.size() - 1) / page_size);
    CHECK(engine.tree().pages().size() == (longer.size() - 1) / page_size);
    request.prompt = longer, request.drafter = {};
    const size_t third = engine.submit(request);
    for (size_t step = 0; !engine.idle() && step < 100; ++step)
      for (const Event& event : engine.step())
        if (event.token) heard[event.id].push_back(*event.token);
    CHECK(heard[third] == alone(toy_runner(options, V), request).said);
  }
}

TEST_CASE("drafts take only what is left over: no text stops for them, and the budget holds") {
  // Two sequences of one page each, and no third page.
  const EngineOptions options{.pages = 2, .page_size = 8, .sequences = 2, .budget = 5};
  Engine engine(toy_runner(options, V));
  Request request{.prompt = {1, 2}, .max_new_tokens = 6, .sampling = {.temperature = 0}};
  request.drafter = toy_drafter(V, 0), request.max_drafts = 4;
  engine.submit(request);
  request.prompt = {3, 4};
  engine.submit(request);
  engine.step();
  engine.step();
  CHECK(engine.sequence_steps().at(0).drafted == 3);  // of the 5 tokens the plan has taken 2
  CHECK(engine.sequence_steps().at(1).drafted == 0);
  while (!engine.idle()) {
    engine.step();
    CHECK(engine.plan().preempted.empty());
  }
}

TEST_CASE("what a draft throws, or a token that is none, ends its text alone") {
  const EngineOptions options{.pages = 10, .page_size = 4, .sequences = 3, .budget = 20};
  const Request right{.prompt = {1, 2}, .max_new_tokens = 5, .sampling = {.temperature = 0}};
  Request throws = right, outside = right, many = right;
  throws.drafter = [](std::span<const int>, size_t) -> Ids { throw std::runtime_error("no idea"); };
  outside.drafter = [](std::span<const int>, size_t) { return Ids{96}; };
  many.drafter = [](std::span<const int>, size_t k) { return Ids(k + 1, 0); };
  Served got = serve(toy_runner(options, V), {throws, right, outside, many});
  CHECK(got.heard[0].error == "no idea");
  CHECK(got.heard[2].error == "a draft: wanted 0 to 95, got 96");
  CHECK(got.heard[3].error == "drafts: wanted at most 4, got 5");
  CHECK(got.heard[0].said.size() == 1);
  CHECK(got.heard[1].said == alone(toy_runner(options, V), right).said);
  CHECK(got.left_over == 10);
}

TEST_CASE("a runner that throws leaves the drafts unread, and the text goes on as before") {
  const EngineOptions options{.pages = 10, .page_size = 2, .sequences = 1, .budget = 20};
  Request request{.prompt = {1, 2}, .max_new_tokens = 9, .sampling = {.temperature = 0}};
  const Ids said = alone(toy_runner(options, V), request).said;
  request.drafter = toy_drafter(V, 30), request.max_drafts = 3;
  ModelRunner runner = toy_runner(options, V);
  size_t calls = 0;
  runner.run = [&, run = runner.run](std::span<const Chunk> chunks, Matrix logits) {
    if (++calls % 2 == 0) throw std::runtime_error("not now");
    run(chunks, logits);
  };
  Engine engine(runner);
  engine.submit(request);
  Ids heard;
  for (size_t step = 0; !engine.idle() && step < 50; ++step) {
    if (calls % 2 == 1) {
      REFUSES_AS(engine.step(), "not now", std::runtime_error);
      continue;
    }
    for (const Event& event : engine.step())
      if (event.token) heard.push_back(*event.token);
  }
  CHECK(heard == said);
  CHECK(engine.pool().free() + engine.tree().evictable() == 10);
}

TEST_CASE("a text that repeats itself, and a model that drafts for itself, take fewer steps") {
  const EngineOptions options{.pages = 30, .page_size = 8, .sequences = 1, .budget = 32};
  const Model model = small_model(false);
  Request request{.prompt = {1, 2, 3}, .max_new_tokens = 33, .sampling = {.temperature = 0}};
  const HeardText want = alone(model_runner(model, options), request);
  request.drafter = model_drafter(model, 200), request.max_drafts = 3;
  Served got = serve(model_runner(model, options), {request});
  CHECK(got.heard[0].said == want.said);
  CHECK((got.heard[0].logits == want.logits));
  CHECK(got.steps < 33);
  // This runner goes on counting to 7, and from 0 again.
  ModelRunner counts = toy_runner(options, V);
  counts.run = [](std::span<const Chunk> chunks, Matrix logits) {
    size_t row = 0;
    for (const Chunk& chunk : chunks)
      for (size_t i = chunk.ids.size() - chunk.wanted; i < chunk.ids.size(); ++i) {
        std::ranges::fill(logits.row(row), 0.0f);
        logits.row(row++)[size_t(chunk.ids[i] + 1) % 8] = 1;
      }
  };
  request.drafter = lookup_drafter(), request.max_drafts = 4;
  Served repeated = serve(counts, {request});
  CHECK(repeated.heard[0].said == alone(counts, request).said);
  CHECK(repeated.rejected == 0);
  CHECK(repeated.steps == 13);
}

}  // namespace t2t::speculation_test
