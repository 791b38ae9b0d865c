// Many clients at once, with too little memory for all of their texts. With the preset tsan, the
// threads of the server are watched meanwhile.
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "16_server/server/http_server.hpp"
#include "running.hpp"

namespace t2t::load_test {

using nlohmann::json;
using std::size_t;

namespace {
/// Pages for a text and a half, and copies of those that are stopped. Nothing is read before the
/// gate is open.
ModelRunner narrow_runner(const std::atomic<bool>& gate) {
  EngineOptions options = tiny_options;
  options.pages = 14, options.swap = 12;
  ModelRunner runner = slow(model_runner(tiny_served().model, options));
  runner.run = [run = runner.run, &gate](std::span<const Chunk> chunks, Matrix logits) {
    gate.wait(false);
    run(chunks, logits);
  };
  return runner;
}
std::string question(size_t client, const char* more) {
  return R"({"messages": [{"role": "user", "content": "Number )" + std::to_string(client % 5) +
         R"("}], "max_tokens": 40, "temperature": 0.9, "seed": )" + std::to_string(client) + more +
         "}";
}
std::string text_of(const HttpResult& reply) {
  if (reply.status != 200) return "refused: " + std::to_string(reply.status);
  return json::parse(reply.body)["choices"][0]["message"]["content"];
}
}  // namespace

TEST_CASE("under load, each answer is the one that it would be alone; who goes away holds nobody") {
  constexpr size_t clients = 9;
  std::vector<std::string> alone, together(clients);
  {
    const Running running;
    for (size_t i = 0; i < clients; ++i)
      alone.push_back(text_of(running.post(chat, question(i, ""))));
  }
  std::atomic<bool> gate = false;
  Running running({}, narrow_runner(gate));
  std::vector<std::thread> threads;
  for (size_t client = 0; client < clients; ++client)
    threads.emplace_back([&, client] {
      if (client % 3 == 2) {  // goes away after some events
        size_t heard = 0;
        running.client().send("POST", chat, question(client, R"(, "stream": true)"), as_json,
                              [&](std::string_view part) { return (heard += part.size()) < 500; });
        running.get("/metrics");
      } else {
        together[client] = text_of(running.post(chat, question(client, R"(, "logprobs": true)")));
      }
    });
  // On a busy machine, clients could otherwise come one after the other, and no text would be
  // stopped.
  for (int i = 0; i < 6000 && running.service.counts().unfinished < clients; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  gate = true;
  gate.notify_all();
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 0; i < clients; ++i) {
    if (i % 3 != 2) CHECK(together[i] == alone[i]);
  }
  const ServiceCounts counts = at_rest(running.service);
  CHECK(counts.preemptions > 0);
  CHECK(counts.cancelled > 0);
  CHECK(counts.failed == 0);
  CHECK(counts.pages_free + counts.pages_cached == 14);
}

}  // namespace t2t::load_test
