// What must be true of the text of an answer while its tokens come.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "10_pretrained/model/tiny_model.hpp"
#include "16_server/answer/answer_deltas.hpp"
#include "16_server/answer/answer_text.hpp"
#include "16_server/answer/token_logprobs.hpp"
#include "random.hpp"
#include "support/all_close.hpp"
#include "support/lists.hpp"
#include "support/refuses.hpp"

namespace t2t::answer_test {

using std::size_t;
using Texts = std::vector<std::string>;

/// What is shown after each chunk; at the end what finish returns, if the text has not been
/// stopped.
static Texts shown(const Texts& stops, const Texts& chunks) {
  StopStrings strings(stops);
  Texts all;
  for (const std::string& chunk : chunks) all.push_back(strings.push(chunk));
  all.push_back(strings.finish());
  return all;
}

TEST_CASE("worked by hand: a stop string in two tokens is never shown, nor is its beginning") {
  CHECK(shown({"END"}, {"the E", "N", "ergy"}) == Texts{"the ", "", "ENergy", ""});
  CHECK(shown({"END"}, {"the E", "N", "D of"}) == Texts{"the ", "", "", ""});
  CHECK(shown({"END"}, {"the E", "N"}) == Texts{"the ", "", "EN"});
  CHECK(shown({}, {"the E", "ND"}) == Texts{"the E", "ND", ""});
  CHECK(shown({"aab"}, {"a", "a", "a", "b", "a"}) == Texts{"", "", "a", "", "", ""});
  CHECK(shown({"\nUser:"}, {"No.\n", "Us", "e it:\nUser", ":"}) ==
        Texts{"No.", "", "\nUse it:", "", ""});
}

TEST_CASE("a long stop string is held back as a whole") {
  const std::string stop = std::string(300, 'x') + "end";
  Texts letters;  // each by itself
  for (const char letter : "a" + stop + "b") letters.emplace_back(1, letter);
  Texts want(letters.size() + 1);
  want[0] = "a";
  CHECK(shown({stop}, letters) == want);
}

TEST_CASE("of several stop strings the one that is complete first counts") {
  CHECK(shown({"abcX", "b"}, {"zabcX"}) == Texts{"za", ""});
  CHECK(shown({"b", "abcX"}, {"zabcX"}) == Texts{"za", ""});
  CHECK(shown({"b", "ab", "zz"}, {"cab", "zz"}) == Texts{"c", "", ""});
  CHECK(shown({"ab", "b"}, {"ca", "b"}) == Texts{"c", "", ""});
  CHECK(shown({"xy", "x"}, {"ax", "y"}) == Texts{"a", "", ""});
}

TEST_CASE("what is shown does not depend on how the text is cut") {
  Random random(4);
  const auto below = [&](size_t n) { return size_t(random.next_uniform() * double(n)); };
  for (size_t round = 0; round < 3000; ++round) {
    CAPTURE(round);
    Texts stops, chunks;
    for (size_t i = 0; i < 1 + below(3); ++i) {
      stops.emplace_back();
      for (size_t n = 0; n < 1 + below(4); ++n) stops.back() += "ab"[below(2)];
    }
    std::string text;
    for (size_t n = 0; n < below(12); ++n) text += "abc"[below(3)];
    for (size_t at = 0; at < text.size(); at += chunks.back().size())
      chunks.push_back(text.substr(at, 1 + below(4)));

    // Byte by byte, a stop string is one that the text so far ends with: the longest of them.
    std::string want = text;
    for (size_t end = 1; end <= text.size() && want.size() == text.size(); ++end)
      for (const std::string& stop : stops)
        if (text.substr(0, end).ends_with(stop))
          want = text.substr(0, std::min(want.size(), end - stop.size()));
    std::string got;
    for (const std::string& chunk : shown(stops, chunks)) got += chunk;
    CHECK(got == want);
  }
}

TEST_CASE("characters and stop strings: a token may end inside both") {
  const Bpe bpe(tiny_tokenizer(258));  // a token for each byte
  const auto answered = [&](const std::string& text, const Texts& stops) {
    AnswerText answer(bpe, stops);
    Texts all;
    for (const char byte : text)
      if (std::string now = answer.push(int(std::uint8_t(byte))); !now.empty())
        all.push_back(std::move(now));
    all.push_back(answer.finish());
    return all;
  };
  CHECK(answered("aé!", {}) == Texts{"a", "é", "!", ""});
  CHECK(answered("né, né", {"é, n"}) == Texts{"n", ""});
  CHECK(answered("a\xC3", {}) == Texts{"a", "\uFFFD"});
  CHECK(answered("ab\xE2\x82", {"b\uFFFD"}) == Texts{"a", ""});  // complete at the end only
  REFUSES(AnswerText(bpe, {"a", ""}), "a stop string: wanted text, got none");
}

TEST_CASE("log-probabilities are those of the logits, the likeliest first") {
  const std::vector<float> logits = {0, std::log(2.0f), 0, std::log(4.0f),
                                     -std::numeric_limits<float>::infinity()};
  const TokenLogprobs logprobs = token_logprobs({logits.data(), logits.size()}, 2, 3);
  CHECK(logprobs.token.id == 2);
  CHECK(std::abs(logprobs.token.log_p - std::log(1.0 / 8)) < 1e-6);
  REQUIRE(logprobs.likeliest.size() == 3);
  const auto id = [&](size_t i) { return logprobs.likeliest[i].id; };
  CHECK(id(0) == 3);
  CHECK(id(1) == 1);
  CHECK(id(2) == 0);  // of equally likely ones the first
  CHECK(std::abs(logprobs.likeliest[0].log_p - std::log(0.5)) < 1e-6);
  const std::vector<float> large = {1000, 1000};  // whose exponentials are infinite
  CHECK(std::abs(token_logprobs({large.data(), 2}, 0, 0).token.log_p - std::log(0.5)) < 1e-6);
  const TokenLogprobs all = token_logprobs({logits.data(), logits.size()}, 4, 9);
  CHECK(all.likeliest.size() == 5);
  CHECK(all.token.log_p == -std::numeric_limits<double>::infinity());
}

TEST_CASE("log-probabilities want a token that is there, and logits that are numbers") {
  const std::vector<float> logits(5);
  REFUSES(token_logprobs({logits.data(), logits.size()}, 5, 1), "the token: wanted 0 to 4, got 5");
  using Limits = std::numeric_limits<float>;
  for (const std::vector<float>& bad : {std::vector<float>{0, Limits::quiet_NaN()},
                                        {Limits::quiet_NaN(), 0},
                                        {0, Limits::infinity()},
                                        {-Limits::infinity(), -Limits::infinity()}})
    REFUSES_AS(token_logprobs({bad.data(), 2}, 0, 1),
               "logits: wanted numbers below infinity, got others", std::runtime_error);
}

TEST_CASE("an answer ends for one reason, and what comes after it gives nothing") {
  const Bpe bpe(tiny_tokenizer(258));
  const auto said = [](size_t answer, std::optional<int> token, std::optional<Ending> ending = {}) {
    return AnswerEvent{answer, {7, token, ending}};
  };
  AnswerDeltas answering(bpe, 3, {"yz"});
  CHECK(answering.take(said(0, 'a'))->text == "a");
  CHECK(answering.take(said(1, 'y'))->text == "");
  const auto stopped = answering.take(said(1, 'z'));
  CHECK(stopped->text == "");
  CHECK(stopped->reason == "stop");
  CHECK_FALSE(answering.take(said(1, 'x')));
  const auto full = answering.take(said(0, 'y', Ending::context_full));
  CHECK(full->text == "y");
  CHECK(full->reason == "length");
  CHECK_FALSE(answering.all_ended());
  CHECK(answering.take(said(2, {}, Ending::stop_token))->reason == "stop");
  CHECK(answering.all_ended());
  CHECK(answering.tokens() == 4);
  AnswerDeltas failing(bpe, 1, {});
  REFUSES_AS(failing.take({0, {7, {}, {}, "no logits"}}), "no logits", std::runtime_error);
  CHECK_THROWS_AS(failing.take({0, {7, {}, {}, no_memory}}), std::bad_alloc);
}

}  // namespace t2t::answer_test
