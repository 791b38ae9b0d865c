// What must be true of a conversation, with a model of random numbers.
#include <doctest/doctest.h>

#include <limits>
#include <stdexcept>

#include "10_pretrained/show_chat.hpp"
#include "10_pretrained/tiny_model.hpp"

using namespace t2t;

static Session tiny_session() {
  Random random(1);
  const Config config = tiny_config();
  return make_session(GgufFile("tiny.gguf", gguf_file(config, draw_model(config, random))));
}

TEST_CASE("an answer that breaks off leaves the conversation as it was") {
  const Session session = tiny_session();
  int logits_seen = 0, breaks_at = 0;
  ChatOptions options{"Be tiny.", {.most = 6, .sampling = {.temperature = 0}}, 200};
  options.generation.filter = [&](Row logits) {
    if (++logits_seen == breaks_at) throw std::runtime_error("broken");
    logits[257] = -std::numeric_limits<float>::infinity();  // no answer ends early
  };
  Random random(1);
  Conversation whole(session, options, random), broken(session, options, random);
  const auto ids_of = [](const Spoken& spoken) { return spoken.ids; };
  std::vector<int> first, second;
  REQUIRE_NOTHROW(first = ids_of(whole.ask("One?")));
  REQUIRE_NOTHROW(second = ids_of(whole.ask("Two?")));
  CHECK(first.size() == 6);
  CHECK(second != first);

  // Broken off in a first and in a later answer, at its first token and in its midst.
  for (const int at : {1, 4}) {
    broken.begin();
    logits_seen = 0, breaks_at = at;
    CHECK_THROWS_WITH_AS(broken.ask("One, and more?"), "broken", std::runtime_error);
    CHECK(ids_of(broken.ask("One?")) == first);
    logits_seen = 0;
    CHECK_THROWS_WITH_AS(broken.ask("Two, and more?"), "broken", std::runtime_error);
    CHECK(ids_of(broken.ask("Two?")) == second);
  }
}
