// What must be true of the server when memory runs out: whose answer ends, and what goes on.
#include <doctest/doctest.h>

#include <exception>
#include <new>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "16_server/server/http_server.hpp"
#include "16_server/server/service.hpp"
#include "running.hpp"
#include "support/lists.hpp"
#include "support/little_memory.hpp"

namespace t2t::memory_test {

using namespace std::chrono_literals;
using nlohmann::json;
using std::size_t;

/// Memory runs out beside the model's pass, not in it: an exception may not leave OpenMP's loops.
static ModelRunner sure_runner() {
  ModelRunner sure = tiny_runner();
  sure.run = [run = sure.run](std::span<const Chunk> chunks, Matrix logits) {
    LittleMemory::set_enough(true);
    run(chunks, logits);
    LittleMemory::set_enough(false);
  };
  return sure;
}

TEST_CASE("a text that finds no memory when it is submitted is not at fault, and leaves nothing") {
  Service service(tiny_runner(), 8);
  std::vector<Request> asked = {{.prompt = Ids(250, 1), .max_new_tokens = 3},
                                {.prompt = Ids(250, 2)}};
  std::exception_ptr thrown;
  try {
    const LittleMemory little(1000);  // the engine's copy of the prompt's ids
    service.ask(std::move(asked));
  } catch (...) {
    thrown = std::current_exception();
  }
  REQUIRE(thrown);
  CHECK_THROWS_AS(std::rethrow_exception(thrown), std::bad_alloc);
  CHECK(at_rest(service).sequences == 0);
  const auto answers = service.ask({{.prompt = Ids(250, 1), .max_new_tokens = 3}});
  std::optional<AnswerEvent> answer_event;
  while ((answer_event = answers->next(3s)) && !answer_event->event.ending) {
  }
  CHECK(answer_event);
  CHECK(at_rest(service).ended == 1);
}

TEST_CASE("a step without memory fails its texts with that reason, and the service goes on") {
  ModelRunner failing = tiny_runner();
  int calls = 0;
  failing.run = [run = failing.run, &calls](std::span<const Chunk> chunks, Matrix logits) {
    if (++calls == 3) throw std::bad_alloc();
    run(chunks, logits);
  };
  const Running running({}, failing);
  const HttpResult whole = running.post(chat, hello(""));
  CHECK(whole.status == 503);
  CHECK(json::parse(whole.body)["error"]["message"] == "there is not enough memory");
  CHECK(running.post(chat, hello("")).status == 200);
  calls = 0;
  std::string stream;
  CHECK_THROWS_AS(running.client().send("POST", chat, hello(R"(, "stream": true)"), as_json,
                                        [&](std::string_view part) {
                                          stream += part;
                                          return true;
                                        }),
                  std::runtime_error);  // it ends without an end
  CHECK(stream.find("there is not enough memory") != std::string::npos);
  CHECK(stream.find("[DONE]") == std::string::npos);
}

TEST_CASE("where memory runs out now and then, requests fail one by one, and the server stays") {
  LittleMemory::spare_this_thread();
  Running running({}, sure_runner());
  size_t answered = 0, refused = 0, cut = 0;
  // Small pieces of memory are there as long as others are given back. nlohmann-json needs some to
  // give its own back, and ends the program without.
  for (unsigned every = 1; every <= 60; ++every) {
    const LittleMemory little(512, every);
    try {
      const std::string more = every % 2 ? R"(, "stream": true)" : R"(, "logprobs": true)";
      const HttpResult got = running.post(chat, hello(more));
      ++(got.status == 200 ? answered : refused);
      if (got.status != 200) CHECK((got.status == 500 || got.status == 503));
    } catch (const std::runtime_error&) {
      ++cut;
    }
  }
  CHECK(answered > 0);
  CHECK(refused + cut > 0);
  CHECK(running.get("/health").status == 200);
  CHECK(running.post(chat, hello("")).status == 200);
  const ServiceCounts counts = at_rest(running.service);
  CHECK(counts.pages_free + counts.pages_cached == 60);
}

}  // namespace t2t::memory_test
