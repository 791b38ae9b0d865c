// What must be true of the engine whatever comes: random workloads, with a runner whose pages hold
// nothing but tokens.
#include "15_serving/workload.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "15_serving/shows/toy_runner.hpp"
#include "support/lists.hpp"

namespace t2t::workload_test {

using std::size_t;

static const size_t V = 11;
static ModelRunner toy(const EngineOptions& options) { return toy_runner(options, V); }

/// Fewer where every index and address is watched, which takes ten times as long.
#ifdef __SANITIZE_ADDRESS__
static const size_t workloads = 1'000;
#else
static const size_t workloads = 10'000;
#endif

/// What breaks in a workload; an exception does, too.
static std::string wrong_in(const Workload& workload, const AfterStep& after = {}) {
  try {
    return run_workload(workload, toy, after);
  } catch (const std::exception& error) {
    return std::string("threw: ") + error.what();
  }
}

/// A workload, and how its pages look step by step.
static std::string drawn(const Workload& workload) {
  std::string sequence;
  for (const Arrival& arrival : workload.arrivals)
    sequence +=
        "text of " + std::to_string(arrival.request.prompt.size()) + " tokens, at step " +
        std::to_string(arrival.step) + ", " + std::to_string(arrival.request.max_new_tokens) +
        " more" +
        (arrival.request.drafter ? ", " + std::to_string(arrival.request.max_drafts) + " drafts"
                                 : "") +
        "\n";
  wrong_in(workload, [&](size_t step, const Engine& engine, const std::vector<Event>&) {
    sequence += "step " + std::to_string(step) + "  " + picture_of(engine) + "\n";
  });
  return sequence;
}

TEST_CASE(
    "ten thousand random workloads break no invariant, and each text says what it says alone") {
  Random random(1);
  size_t steps = 0, stops = 0, swapped = 0, shared = 0, cancelled = 0, accepted = 0, rejected = 0;
  for (size_t i = 0; i < workloads; ++i) {
    const Workload workload = random_workload(random, V);
    const std::string wrong =
        wrong_in(workload, [&](size_t, const Engine& engine, const std::vector<Event>&) {
          ++steps, stops += engine.plan().preempted.size();
          for (const Sequence& sequence : engine.waiting()) swapped += !sequence.swapped.empty();
          for (const SequenceStep& part : engine.sequence_steps())
            accepted += part.accepted, rejected += part.drafted - part.accepted;
          for (const Sequence& sequence : engine.running())
            for (const size_t page : sequence.table) shared += engine.pool().references(page) > 2;
        });
    for (const Arrival& arrival : workload.arrivals) cancelled += arrival.cancelled.has_value();
    if (wrong.empty()) continue;
    CAPTURE(i);
    const auto fails = [](const Workload& tried) { return !wrong_in(tried).empty(); };
    const Workload small = shrunk(workload, fails);
    INFO(drawn(small));
    CHECK(wrong_in(small) == "");
    return;
  }
  // The workloads reach what is rare.
  CHECK(steps > 10 * workloads);
  CHECK(stops > workloads / 10);
  CHECK(swapped > workloads / 10);
  CHECK(shared > workloads);
  CHECK(cancelled > workloads / 10);
  CHECK(accepted > 2 * workloads);
  CHECK(rejected > 2 * workloads);
}

TEST_CASE(
    "by hand: two texts of one beginning have its pages in common, and leave nothing behind") {
  Workload workload{{.pages = 6, .page_size = 2, .sequences = 2, .budget = 8}, {}};
  for (const size_t step : {0, 1}) {
    Request request{.prompt = {1, 2, 3, 4, int(step)}, .max_new_tokens = 3};
    request.sampling.temperature = 0;
    workload.arrivals.push_back({step, request, {}});
  }
  std::string pictures;
  size_t free = 0;
  CHECK(run_workload(workload, toy,
                     [&](size_t step, const Engine& engine, const std::vector<Event>&) {
                       if (step == 1) pictures = picture_of(engine);
                       free = engine.pool().free() + engine.tree().evictable();
                     }) == "");
  CHECK(pictures == "++01..");
  CHECK(free == 6);
}

/// The tokens that each sequence reads in each step of a workload, "0: 4, 1: 2" for each.
static std::vector<std::string> reads_of(const Workload& workload) {
  std::vector<std::string> reads;
  CHECK(run_workload(workload, toy, [&](size_t, const Engine& engine, const std::vector<Event>&) {
          std::string read;
          for (const auto& [id, tokens] : engine.plan().parts)
            read += (read.empty() ? "" : ", ") + std::to_string(id) + ": " + std::to_string(tokens);
          reads.push_back(read);
        }) == "");
  return reads;
}
static Arrival arrival(size_t step, std::vector<int> prompt, size_t most) {
  Request request{.prompt = std::move(prompt), .max_new_tokens = most};
  request.sampling.temperature = 0;
  return {step, request, {}};
}

TEST_CASE("by hand: a text that goes on in the middle of another's page gets a copy of it") {
  Workload workload{{.pages = 12, .page_size = 4, .sequences = 3, .budget = 16}, {}};
  workload.arrivals = {arrival(0, {1, 2, 3, 4, 5, 6, 7}, 4), arrival(1, {1, 2, 3, 4, 5, 6, 9}, 4),
                       arrival(1, {1, 2, 3, 9}, 4)};
  // Of the second sequence 4 tokens are shared and 2 copied, of the third 3 are copied from a full
  // page.
  CHECK(reads_of(workload)[1] == "0: 1, 1: 1, 2: 1");
}

TEST_CASE("by hand: of texts that begin alike and come together, the first reads the beginning") {
  Workload workload{{.pages = 40, .page_size = 4, .sequences = 5, .budget = 30}, {}};
  const std::vector<int> prompt = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  workload.arrivals = {arrival(0, prompt, 3), arrival(0, prompt, 3), arrival(0, prompt, 3)};
  CHECK(reads_of(workload)[0] == "0: 10");
  CHECK(reads_of(workload)[1] == "0: 1, 1: 1, 2: 1");
  // Nobody waits if no whole page is common.
  workload.arrivals = {arrival(0, {1, 2, 3, 4}, 3), arrival(0, {1, 2, 3, 5}, 3)};
  CHECK(reads_of(workload)[0] == "0: 4, 1: 4");
}

TEST_CASE("by hand: a stopped text goes on from copies of its pages, if there is room for them") {
  Workload workload{{.pages = 4, .page_size = 2, .sequences = 2, .budget = 8}, {}};
  workload.arrivals = {arrival(0, {1, 2, 3}, 5), arrival(0, {4, 5, 6}, 3)};
  // Both have read four tokens when the first needs a third page. In the end it has all four pages.
  for (const size_t swap : {0, 1, 2}) {
    CAPTURE(swap);
    workload.options.swap = swap;
    const std::vector<std::string> reads = reads_of(workload);
    CHECK(std::ranges::count(reads, swap < 2 ? "1: 5" : "1: 1") == 1);
  }
}

/// A toy runner that has no memory for one call in three, whatever the call is.
static ModelRunner failing_toy(const EngineOptions& options) {
  ModelRunner toy_one = toy(options), failing = toy_one;
  const auto calls = std::make_shared<size_t>(0);
  const auto fail_sometimes = [calls] {
    if (++*calls % 3 == 0) throw std::bad_alloc();
  };
  failing.run = [=](std::span<const Chunk> chunks, Matrix logits) {
    fail_sometimes(), toy_one.run(chunks, logits);
  };
  failing.copy_of = [=](size_t page) { return fail_sometimes(), toy_one.copy_of(page); };
  failing.put = [=](size_t page, std::span<const std::byte> copy) {
    fail_sometimes(), toy_one.put(page, copy);
  };
  return failing;
}

TEST_CASE("a runner that throws now and then: no page is lost, and each text says the same") {
  Random random(2);
  for (size_t i = 0; i < workloads / 20; ++i) {
    CAPTURE(i);
    const Workload workload = random_workload(random, V);
    Engine engine(failing_toy(workload.options));
    for (const Arrival& arrival : workload.arrivals) engine.submit(arrival.request);
    std::vector<std::vector<int>> said(workload.arrivals.size());
    for (size_t step = 0; !engine.idle() && step < 5000; ++step) {
      try {
        for (const Event& event : engine.step())
          if (event.token) said[event.id].push_back(*event.token);
      } catch (const std::bad_alloc&) {
      } catch (const std::exception& error) {
        CHECK(std::string(error.what()) == "");
        break;
      }
    }
    CHECK(engine.idle());
    CHECK(engine.pool().free() + engine.tree().evictable() == workload.options.pages);
    for (size_t sequence = 0; sequence < said.size(); ++sequence)
      CHECK(said[sequence] ==
            alone(workload.arrivals[sequence].request, workload.options, toy).said);
  }
}

TEST_CASE("a long prompt comes in chunks, and does not hold up an answer") {
  Workload workload{{.pages = 32, .page_size = 4, .sequences = 2, .budget = 8}, {}};
  workload.arrivals.push_back({0, {.prompt = {1, 2}, .max_new_tokens = 12}, {}});
  workload.arrivals.push_back({1, {.prompt = std::vector<int>(50, 3), .max_new_tokens = 1}, {}});
  size_t answers = 0;
  CHECK(run_workload(workload, toy,
                     [&](size_t step, const Engine&, const std::vector<Event>& events) {
                       if (step < 8)
                         for (const Event& event : events) answers += event.id == 0;
                     }) == "");
  CHECK(answers ==
        8);  // one in each step, though 50 tokens of the other sequence were read meanwhile
}

}  // namespace t2t::workload_test
