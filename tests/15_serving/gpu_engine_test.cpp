// What must be true of the engine with a model on a device; run on the stand-in, and on a GPU where
// one is.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "15_serving/engine/engine.hpp"
#include "15_serving/gpu_model.hpp"
#include "15_serving/on_gpu/gpu_runner.hpp"
#include "support/all_close.hpp"

namespace t2t::gpu_engine_test {

using namespace device_models;
using std::size_t;
using Logits = Tensor<2>;

/// What an engine says of some requests.
struct Said {
  std::map<size_t, std::vector<Logits>> logits;
  std::map<size_t, Ids> tokens;
  size_t preempted = 0, swapped = 0;
};
static Said served(const ModelRunner& runner, const std::vector<Request>& requests) {
  Engine engine(runner);
  Said said;
  engine.on_logits = [&](size_t id, ConstRow logits) {
    Logits& one = said.logits[id].emplace_back(empty(1, logits.size()));
    std::ranges::copy(logits, one.begin());
  };
  for (const Request& request : requests) engine.submit(request);
  for (size_t step = 0; step < 300 && !engine.idle(); ++step) {
    for (const Event& event : engine.step()) {
      CHECK(event.error == "");
      if (event.token) said.tokens[event.id].push_back(*event.token);
    }
    said.preempted += engine.plan().preempted.size();
    for (const Sequence& sequence : engine.waiting()) said.swapped += !sequence.swapped.empty();
  }
  CHECK(engine.idle());
  return said;
}

/// How far the best logit is above the second.
static float lead(Logits logits) {
  std::ranges::sort(logits, std::ranges::greater{});
  return logits(0, 0) - logits(0, 1);
}

/// The device's logits are the CPU's, and so are the tokens, unless rounding may decide between
/// two. From there on a sequence's answers may differ.
static void agree(const Said& gpu, const Said& cpu) {
  size_t compared = 0, all = 0;
  for (const auto& [id, want] : cpu.logits) {
    CAPTURE(id);
    all += want.size();
    CHECK(gpu.tokens.contains(id));
    if (!gpu.tokens.contains(id)) continue;
    const std::vector<Logits>& got = gpu.logits.at(id);
    for (size_t i = 0; i < std::min(want.size(), got.size()); ++i) {
      const double within = bound(tiny(), want[i]);
      CHECK(all_close(got[i], want[i], within));
      ++compared;
      if (gpu.tokens.at(id)[i] == cpu.tokens.at(id)[i]) continue;
      CHECK(lead(want[i]) <= 2 * within);
      break;
    }
  }
  CHECK(10 * compared >= 9 * all);
}

/// Greedy requests: some begin alike, and their prompts end in, at and after the end of a page.
static std::vector<Request> greedy_requests() {
  std::vector<Request> requests;
  for (const size_t length : {21, 32, 16, 1, 29}) {
    Request request{.prompt = some_ids(length, length % 2 == 0 ? 1 : 4), .max_new_tokens = 6};
    request.sampling.temperature = 0;
    requests.push_back(request);
  }
  return requests;
}

static constexpr EngineOptions roomy{.pages = 40, .page_size = 16, .sequences = 5, .budget = 48};

TEST_CASE("served texts are those of the CPU's engine, with pages for all of them" *
          doctest::test_suite("slow")) {
  const std::vector<Request> requests = greedy_requests();
  agree(served(gpu_runner(tiny(), roomy), requests), served(model_runner(tiny(), roomy), requests));
}

TEST_CASE("served texts are those of the CPU's engine, read again or from swapped pages") {
  const std::vector<Request> requests = greedy_requests();
  const Said cpu = served(model_runner(tiny(), roomy), requests);
  EngineOptions crowded{.pages = 7, .page_size = 8, .sequences = 3, .budget = 20};
  for (const size_t swap : {0, 9}) {
    CAPTURE(swap);
    crowded.swap = swap;
    const Said gpu = served(gpu_runner(tiny(), crowded), requests);
    CHECK(gpu.preempted > 0);
    CHECK((gpu.swapped > 0) == (swap > 0));
    agree(gpu, cpu);
  }
}

}  // namespace t2t::gpu_engine_test
