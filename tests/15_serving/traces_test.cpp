// What must be true of the engine whatever comes: random traces, with a reader whose pages hold
// nothing but tokens.
#include <doctest/doctest.h>

#include <string>

#include "15_serving/traces/toy_reader.hpp"
#include "15_serving/traces/trace.hpp"

using namespace t2t;
using std::size_t;

static const size_t V = 11;
static PageReader toy(const PageSizes& sizes) { return toy_reader(sizes, V); }

/// Fewer where every index and address is watched, which takes ten times as long.
#ifdef __SANITIZE_ADDRESS__
static const size_t traces = 1'000;
#else
static const size_t traces = 10'000;
#endif

/// What breaks in a trace; an exception does, too.
static std::string wrong_in(const ServingTrace& trace, const AfterStep& after = {}) {
  try {
    return run_trace(trace, toy, after);
  } catch (const std::exception& error) {
    return std::string("threw: ") + error.what();
  }
}

/// A trace, and how its pages look step by step.
static std::string drawn(const ServingTrace& trace) {
  std::string text;
  for (const Arrival& arrival : trace.arrivals)
    text +=
        "text of " + std::to_string(arrival.request.prompt.size()) + " tokens, at step " +
        std::to_string(arrival.step) + ", " + std::to_string(arrival.request.most) + " more" +
        (arrival.request.draft ? ", " + std::to_string(arrival.request.drafts) + " drafts" : "") +
        "\n";
  wrong_in(trace, [&](size_t step, const Engine& engine, const std::vector<Event>&) {
    text += "step " + std::to_string(step) + "  " + picture_of(engine) + "\n";
  });
  return text;
}

TEST_CASE("ten thousand random traces break no invariant, and each text says what it says alone") {
  Random random(1);
  size_t steps = 0, stops = 0, shared = 0, cancelled = 0, accepted = 0, rejected = 0;
  for (size_t i = 0; i < traces; ++i) {
    const ServingTrace trace = random_trace(random, V);
    const std::string wrong =
        wrong_in(trace, [&](size_t, const Engine& engine, const std::vector<Event>&) {
          ++steps, stops += engine.plan().stopped.size();
          for (const Engine::Reading& reading : engine.readings())
            accepted += reading.accepted, rejected += reading.drafted - reading.accepted;
          for (const Engine::Text& text : engine.running())
            for (const size_t page : text.table) shared += engine.pool().users(page) > 2;
        });
    for (const Arrival& arrival : trace.arrivals) cancelled += arrival.cancelled.has_value();
    if (wrong.empty()) continue;
    CAPTURE(i);
    const auto fails = [](const ServingTrace& tried) { return !wrong_in(tried).empty(); };
    const ServingTrace small = shrunk(trace, fails);
    INFO(drawn(small));
    CHECK(wrong_in(small) == "");
    return;
  }
  // The traces reach what is rare.
  CHECK(steps > 10 * traces);
  CHECK(stops > traces / 10);
  CHECK(shared > traces);
  CHECK(cancelled > traces / 10);
  CHECK(accepted > 2 * traces);
  CHECK(rejected > 2 * traces);
}

TEST_CASE(
    "by hand: two texts of one beginning have its pages in common, and leave nothing behind") {
  ServingTrace trace{{.pages = 6, .page = 2, .texts = 2, .budget = 8}, {}};
  for (const size_t step : {0, 1}) {
    Request request{.prompt = {1, 2, 3, 4, int(step)}, .most = 3};
    request.sampling.temperature = 0;
    trace.arrivals.push_back({step, request, {}});
  }
  std::string pictures;
  size_t free = 0;
  CHECK(run_trace(trace, toy, [&](size_t step, const Engine& engine, const std::vector<Event>&) {
          if (step == 1) pictures = picture_of(engine);
          free = engine.pool().free() + engine.tree().spare();
        }) == "");
  CHECK(pictures == "++01..");
  CHECK(free == 6);
}

TEST_CASE("a long prompt comes in chunks, and does not hold up an answer") {
  ServingTrace trace{{.pages = 32, .page = 4, .texts = 2, .budget = 8}, {}};
  trace.arrivals.push_back({0, {.prompt = {1, 2}, .most = 12}, {}});
  trace.arrivals.push_back({1, {.prompt = std::vector<int>(50, 3), .most = 1}, {}});
  size_t answers = 0;
  CHECK(run_trace(trace, toy, [&](size_t step, const Engine&, const std::vector<Event>& events) {
          if (step < 8)
            for (const Event& event : events) answers += event.id == 0;
        }) == "");
  CHECK(answers == 8);  // one in each step, though 50 tokens of the other text were read meanwhile
}
