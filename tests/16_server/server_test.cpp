// What must be true of the server's thread of the engine, and of those that ask it.
#include <doctest/doctest.h>

#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "16_server/server/service.hpp"
#include "running.hpp"
#include "support/lists.hpp"
#include "support/refuses.hpp"

namespace t2t::server_test {

using namespace std::chrono_literals;
using std::size_t;

static Request request(int first, size_t most) {
  Request asked{
      .prompt = Ids(20, first), .max_new_tokens = most, .sampling = {.temperature = 0.9f}};
  asked.seed = std::uint64_t(first);
  return asked;
}

/// The ids of the only answer, which must come to its end.
static Ids ids_of(Mailbox& answers) {
  Ids ids;
  bool ended = false;
  while (!ended) {
    const std::optional<AnswerEvent> answer_event = answers.next(60s);
    if (!answer_event) break;
    if (answer_event->event.token) ids.push_back(*answer_event->event.token);
    ended = answer_event->event.ending.has_value();
  }
  CHECK(ended);
  return ids;
}

TEST_CASE("many threads ask at the same time, and each gets the answer that it would get alone") {
  std::vector<Ids> alone;
  {
    Service service(tiny_runner(), 1);
    for (int i = 0; i < 12; ++i) alone.push_back(ids_of(*service.ask({request(i, 15)})));
  }
  Service service(tiny_runner(), 20);
  std::vector<Ids> together(12);
  std::vector<std::thread> threads;
  for (int i = 0; i < 12; ++i)
    threads.emplace_back([&, i] { together[size_t(i)] = ids_of(*service.ask({request(i, 15)})); });
  for (std::thread& thread : threads) thread.join();
  CHECK(together == alone);
  const ServiceCounts counts = at_rest(service);
  CHECK(counts.sequences == 12);
  CHECK(counts.ended == 12);
  CHECK(counts.tokens_generated == 12 * 15);
  CHECK(counts.pages_free + counts.pages_cached == 60);
}

TEST_CASE("a service refuses what the engine refuses, all or nothing, and more than it may hold") {
  Service service(slow_runner(), 2);
  REFUSES(service.ask({request(1, 5), {.prompt = {999}}}),
          "an id of the prompt: wanted 0 to 257, got 999");
  CHECK(at_rest(service).sequences == 0);
  // If the first of the two went on, it would have ended by now.
  CHECK(ids_of(*service.ask({request(1, 20)})).size() == 20);
  CHECK(at_rest(service).ended == 1);
  std::vector<Request> six(6, request(1, 200));
  const auto answers = service.ask(six);
  REFUSES_AS(service.ask({request(1, 1)}), "6 sequences are running or waiting already", TooBusy);
  CHECK(service.counts().refused == 1);
  REFUSES(service.ask(std::vector<Request>(7, request(1, 1))),
          "answers at a time: wanted at most 6, got 7");  // to wait would not help
  service.cancel(answers);
  CHECK(at_rest(service).cancelled == 6);
  CHECK(ids_of(*service.ask({request(1, 3)})).size() == 3);
}

TEST_CASE("what has been cancelled gives its pages back, and one answer of several can be") {
  Service service(slow_runner(), 8);
  const auto answers = service.ask({request(1, 100), request(2, 20)});
  while (answers->next(3s)->answer != 0) {
  }
  service.cancel(answers, 0);
  size_t of_second = 0;
  for (std::optional<AnswerEvent> answer_event; (answer_event = answers->next(3s));) {
    of_second += answer_event->answer == 1 && answer_event->event.token;
    if (answer_event->event.ending) break;
  }
  CHECK(of_second > 0);
  const ServiceCounts counts = at_rest(service);
  CHECK(counts.cancelled == 1);
  CHECK(counts.ended == 1);
  CHECK(counts.pages_free + counts.pages_cached == 60);
}

TEST_CASE("a runner that throws fails all texts with its reason, and the service goes on") {
  ModelRunner failing = tiny_runner();
  int calls = 0;
  failing.run = [run = failing.run, &calls](std::span<const Chunk> chunks, Matrix logits) {
    if (++calls == 3) throw std::runtime_error("no memory");
    run(chunks, logits);
  };
  Service service(failing, 8);
  const auto answers = service.ask({request(1, 9), request(3, 9)});
  std::vector<std::string> errors(2);
  while (errors[0].empty() || errors[1].empty()) {
    const std::optional<AnswerEvent> answer_event = answers->next(3s);
    if (!answer_event || answer_event->event.ending) break;
    errors[answer_event->answer] = answer_event->event.error;
  }
  CHECK(errors == std::vector<std::string>{"no memory", "no memory"});
  CHECK(ids_of(*service.ask({request(2, 4)})).size() == 4);
  CHECK(at_rest(service).failed == 2);
}

TEST_CASE("closing lets answers end within the grace, and ends the others with a reason") {
  Service patient(tiny_runner(), 8);
  const auto ends = patient.ask({request(1, 5)});
  patient.close(60s);
  CHECK(ids_of(*ends).size() == 5);
  REFUSES_AS(patient.ask({request(1, 5)}), "the server is ending, and accepts no more requests",
             Closed);
  Service hasty(slow_runner(), 8);
  const auto cut = hasty.ask({request(1, 150)});
  hasty.close(0s);
  std::string error;
  for (std::optional<AnswerEvent> answer_event; error.empty() && (answer_event = cut->next(1s));)
    error = answer_event->event.error;
  CHECK(error == "the server has ended");
}

}  // namespace t2t::server_test
