// What must be true of a conversation, with a model of random numbers.
#include <doctest/doctest.h>

#include <limits>
#include <sstream>
#include <stdexcept>

#include "10_pretrained/chat/show_chat.hpp"
#include "10_pretrained/model/tiny_model.hpp"
#include "10_pretrained/program/open_session.hpp"
#include "10_pretrained/program/show_tour.hpp"
#include "files/files.hpp"
#include "support/refuses.hpp"
#include "support/silence.hpp"
#include "support/tried.hpp"

namespace t2t::chat_test {

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
  const Silence silence;
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
    REFUSES_AS(broken.ask("One, and more?"), "broken", std::runtime_error);
    CHECK(ids_of(broken.ask("One?")) == first);
    logits_seen = 0;
    REFUSES_AS(broken.ask("Two, and more?"), "broken", std::runtime_error);
    CHECK(ids_of(broken.ask("Two?")) == second);
  }
}

/// Qwen 2.5's end of a turn and of a text, and a token without a meaning to the book.
static BpeTables qwen_tokenizer() {
  BpeTables tables = tiny_tokenizer(258);
  for (const char* mark : {"<|endoftext|>", "<|fim_pad|>", "<|mine|>"}) {  // 258 to 260
    tables.tokens.push_back(mark);
    tables.kinds.push_back(TokenKind::control);
  }
  tables.eot = 260;
  return tables;
}

TEST_CASE("a chat's answer ends at any end token, and shows no control token") {
  Config config = tiny_config();
  config.V = 261;
  Random random(1);
  const std::vector<std::uint8_t> bytes =
      model_bytes(config, draw_model(config, random), qwen_tokenizer(), "tiny");
  const Session session = make_session(GgufFile("tiny.gguf", bytes));
  for (const int end : {257, 258, 260}) {
    // The model says A, <|fim_pad|>, B, the end, and would go on with C.
    const std::vector<int> says = {'A', 259, 'B', end, 'C', 'C'};
    std::size_t said = 0;
    ChatOptions options{"", {.most = 6, .sampling = {.temperature = 0}}, 200};
    options.generation.filter = [&](Row logits) {
      std::ranges::fill(logits, 0.0f);
      logits[says[said++]] = 1;
    };
    Conversation chat(session, options, random);
    std::vector<int> ids;
    CHECK(printed_by([&] { ids = chat.ask("?").ids; }) == "AB\n");
    CHECK(ids == std::vector<int>{'A', 259, 'B'});
  }
}

TEST_CASE("a chat sees earlier answers as its model's template writes them") {
  const Session session = tiny_session();
  const ChatTemplate format(session.bpe, {.drops_thoughts = true});
  for (const std::string answer : {"<think>a</think>\n\n2", "<think>a", "2"}) {
    std::string forced = answer + '\x01';  // which stands for the end
    ChatOptions options{"Be tiny.", {.most = 30, .sampling = {.temperature = 0}}, 250};
    options.style.drops_thoughts = true;
    const auto choose = [&](Row logits) {
      logits[257] = forced.empty() ? -std::numeric_limits<float>::infinity() : logits[257];
      if (forced.empty()) return;
      logits[forced[0] == '\x01' ? 257 : std::size_t(forced[0])] = 1000;
      forced.erase(0, 1);
    };
    options.generation.filter = choose;
    Random random(1);
    const Silence silence;
    Conversation chat(session, options, random);
    CHECK(session.bpe.said(chat.ask("1+1?").ids) == answer);
    const std::vector<int> second = chat.ask("And 1+2?").ids;

    // The same conversation, read at once.
    const std::vector<ChatMessage> said = {
        {"user", "1+1?"}, {"assistant", answer}, {"user", "And 1+2?"}};
    ModelState state = session.state(250);
    CHECK(second == generate(session.model, state, format.conversation(said, "Be tiny."),
                             options.generation, random));
  }
}

TEST_CASE("an error about text that is not UTF-8 tells the offset in that text") {
  const Session session = tiny_session();
  const ChatTemplate chat(session.bpe);
  REFUSES_AS(chat.question("ab\xff"),
             "user's text: byte 0xff at offset 2 is not UTF-8; save the text as UTF-8",
             std::runtime_error);
  REFUSES_AS(chat.opening("\xff"),
             "system's text: byte 0xff at offset 0 is not UTF-8; save the text as UTF-8",
             std::runtime_error);
}

TEST_CASE("a system prompt that fills the context is refused before any question") {
  const Session session = tiny_session();
  Random random(1);
  const auto begin = [&](std::size_t system, std::size_t context) {
    Conversation(session, {std::string(system, 'a'), {.most = 1}, context}, random);
  };
  // With 50 letters the system's turn has 60 tokens; a question without a word, with the head of
  // its answer, 19.
  CHECK_THROWS_WITH_AS(begin(50, 79),
                       doctest::Contains("the system prompt: its 60 tokens leave no room for a "
                                         "question in a context of 79"),
                       std::runtime_error);
  CHECK_NOTHROW(begin(50, 80));
}

TEST_CASE("lines are read one by one; a line without an end is refused") {
  std::istringstream in("one\r\n\ntwo");
  std::string line;
  CHECK((next_line(in, line) && line == "one"));
  CHECK((next_line(in, line) && line == ""));
  CHECK((next_line(in, line) && line == "two"));
  CHECK(!next_line(in, line));
  std::istringstream long_one(std::string(1 << 20, 'a') + "\n" + std::string(2 << 20, 'b'));
  CHECK(next_line(long_one, line));
  CHECK(line.size() == 1 << 20);
  CHECK_THROWS_WITH_AS(next_line(long_one, line), doctest::Contains("a line of more than 1 MiB"),
                       std::runtime_error);
}

TEST_CASE("the tour tells which pairing is right for the file, and leaves the session in it") {
  for (const Pairing right : {Pairing::neighbours, Pairing::halves}) {
    Config config = tiny_config();
    config.block.pairing = right;
    if (right == Pairing::halves) config.block.biases = Biases::qkv;  // qwen2
    Random random(1);
    const std::vector<std::uint8_t> bytes = gguf_file(config, draw_model(config, random));
    Session session = make_session(GgufFile("tiny.gguf", bytes));
    const std::string shown = printed_by([&] { show_pairings(session, random); });
    const bool halves = right == Pairing::halves;
    const auto says = [&](const std::string& line) { return shown.find(line) != shown.npos; };
    CAPTURE(shown);
    CHECK(says(std::string("neighbours (2i, 2i + 1), which is ") + (halves ? "wrong" : "right") +
               " for this file:"));
    CHECK(says(std::string("halves (i, i + D/2), which is ") + (halves ? "right" : "wrong") +
               " for this file:"));
    CHECK(session.config().block.pairing == right);
  }
}

TEST_CASE("--pairing changes the pairing of any file; without it, the file's own stays") {
  for (const Pairing own : {Pairing::neighbours, Pairing::halves}) {
    Config config = tiny_config();
    config.block.pairing = own;
    if (own == Pairing::halves) config.block.biases = Biases::qkv;  // qwen2
    Random random(1);
    const Folder folder;
    Flags flags;
    flags.model = folder.path / "tiny.gguf";
    const std::vector<std::uint8_t> bytes = gguf_file(config, draw_model(config, random));
    write_file(flags.model, std::string(bytes.begin(), bytes.end()));
    CHECK(open_session(flags).config().block.pairing == own);
    flags.pairing = "neighbours";
    CHECK(open_session(flags).config().block.pairing == Pairing::neighbours);
    flags.pairing = "halves";
    CHECK(open_session(flags).config().block.pairing == Pairing::halves);
  }
}

}  // namespace t2t::chat_test
