// What must be true of transcripts: answers and their ends are learned, all else is given.
#include "17_fine_tuning/preferences/transcript.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "10_pretrained/model/tiny_model.hpp"
#include "support/lists.hpp"
#include "support/refuses.hpp"

namespace t2t::transcript_test {

using std::size_t;

TEST_CASE("by hand: of two turns, both answers and their ends are learned") {
  const Bpe bpe(tiny_tokenizer(258));
  const std::vector<ChatMessage> messages = {
      {"user", "a?"}, {"assistant", "bb!"}, {"user", "c"}, {"assistant", "de"}};
  const Transcript got = transcript_of(messages, bpe, "s");
  // ? for <|im_start|> and a question mark, . for <|im_end|>.
  const std::string text = "?system\ns.\n?user\na?.\n?assistant\nbb!.\n?user\nc.\n?assistant\nde.";
  REQUIRE(got.ids.size() == text.size());
  REQUIRE(got.learned.size() == text.size());
  CHECK(std::count(got.learned.begin(), got.learned.end(), true) == 7);
  const size_t first = text.find("bb!."), second = text.find("de.");
  for (size_t t = 0; t < text.size(); ++t) {
    CAPTURE(t);
    const bool answer = (t >= first && t < first + 4) || (t >= second && t < second + 3);
    CHECK(got.learned[t] == answer);
    if (text[t] == '.') CHECK(got.ids[t] == 257);
    if (answer && text[t] != '.') CHECK(got.ids[t] == int(text[t]));
  }
}

TEST_CASE("by hand: a target is learned if the next token is") {
  Transcript given_1, given_2;
  append(given_1, std::vector{5, 6}, false);
  append(given_1, std::vector{7, 8}, true);
  append(given_2, std::vector{9}, false);
  append(given_2, std::vector{4}, true);
  append(given_2, std::vector{3}, false);
  append(given_2, std::vector{2, 1}, true);
  Batch batch = make_batch(3, 5);
  fill(batch, std::vector{given_1, given_2});
  CHECK(batch.ids == Ids{5, 6, 7, 0, 0, 9, 4, 3, 2, 0, 0, 0, 0, 0, 0});
  const int no = not_learned;
  CHECK(batch.targets == Ids{no, 7, 8, no, no, 4, no, 2, 1, no, no, no, no, no, no});
}

TEST_CASE("messages and transcripts that don't fit are refused") {
  const Bpe bpe(tiny_tokenizer(258));
  const auto of = [&](std::vector<ChatMessage> messages) {
    return transcript_of(messages, bpe, "");
  };
  REFUSES(of({{"assistant", "a"}}), "message 1: wanted the role user, got assistant");
  REFUSES(of({{"user", "a"}, {"user", "b"}}), "message 2: wanted the role assistant, got user");
  REFUSES(of({{"user", "a"}}),
          "messages: wanted at least 2, and an answer to each question, got 1");
  REFUSES(of({}), "messages: wanted at least 2, and an answer to each question, got 0");
  Batch batch = make_batch(1, 3);
  Transcript one;
  append(one, std::vector{1}, true);
  REFUSES(fill(batch, std::vector{one}), "tokens of a transcript: wanted 2 to 4, got 1");
  append(one, std::vector{1, 2, 3, 4}, true);
  REFUSES(fill(batch, std::vector{one}), "tokens of a transcript: wanted 2 to 4, got 5");
  one.ids.resize(4);
  REFUSES(fill(batch, std::vector{one}),
          "learned, the marks of a transcript: wanted 4, one for each token, got 5");
  REFUSES(fill(batch, std::vector{one, one}),
          "transcripts: wanted at most 1, the batch's sequences, got 2");
}

}  // namespace t2t::transcript_test
