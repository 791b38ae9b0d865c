// What must be true of a learned vocabulary: the most frequent pair first, one vocabulary for a
// text, and each text read and written again with it.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ctime>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "10_pretrained/model/save_model.hpp"
#include "10_pretrained/model/tokenizer.hpp"
#include "10_pretrained/tokenizer/unicode.hpp"
#include "13_training/text/train_bpe.hpp"
#include "files/files.hpp"
#include "random.hpp"
#include "support/hashed_weights.hpp"
#include "support/lists.hpp"
#include "support/refuses.hpp"

namespace t2t::bpe_test {

using Lines = std::vector<std::string>;

/// A vocabulary of the bytes and this many merges, without control tokens.
static BpeTables trained(std::string_view text, std::size_t merges, std::size_t least_count = 2,
                         const std::string& pre_tokenizer = "gpt-2") {
  return train_bpe(text, {256 + merges, pre_tokenizer, {}, least_count});
}
/// "l o, lo w"
static std::string merges_of(std::string_view text, std::size_t merges,
                             std::size_t least_count = 2) {
  return fmt::format("{}", fmt::join(trained(text, merges, least_count).merges, ", "));
}

/// Where two lists differ first, in words; empty when they are equal.
static std::string difference(const Lines& got, const Lines& want) {
  for (std::size_t i = 0; i < std::min(got.size(), want.size()); ++i)
    if (got[i] != want[i]) return fmt::format("{}: wanted \"{}\", got \"{}\"", i, want[i], got[i]);
  if (got.size() == want.size()) return "";
  return fmt::format("wanted {} of them, got {}", want.size(), got.size());
}

static std::string fixture(const char* name) {
  return read_file(std::string(T2T_FIXTURES) + "/" + name);
}

/// The first lines of the fixture's text, of up to this many bytes.
static std::string beginning(std::size_t size) {
  const std::string text = fixture("bpe_text.txt");
  return text.substr(0, text.rfind('\n', size) + 1);
}

/// Words of these letters, drawn at random.
static std::string drawn_text(std::uint64_t seed, std::size_t size, std::string_view letters) {
  Random random(seed);
  std::string text;
  while (text.size() < size)
    text += letters[std::size_t(random.next_uniform() * double(letters.size()))];
  return text;
}

TEST_CASE("by hand: low low low lower lowest") {
  // The words are low, then " low" twice, " lower" and " lowest". A space is written Ġ.
  //   l·o 5, o·w 5, Ġ·l 4, w·e 2, e·r, e·s, s·t 1    l·o: the ids of l and o are the smaller ones
  //   lo·w 5, Ġ·lo 4, w·e 2                          lo·w
  //   Ġ·low 4, low·e 2                               Ġ·low
  //   Ġlow·e 2, e·r, e·s, s·t 1                      Ġlow·e
  // Then each pair is there once only.
  const BpeTables tables = train_bpe("low low low lower lowest", {.V = 261});
  CHECK(merges_of("low low low lower lowest", 4) == "l o, lo w, Ġ low, Ġlow e");
  REFUSES(trained("low low low lower lowest", 5),
          "V, the vocabulary: wanted at most 260 for this text, got 261");
  CHECK(tables.tokens.size() == 261);
  CHECK(Lines(tables.tokens.begin() + 256, tables.tokens.end()) ==
        Lines{"lo", "low", "Ġlow", "Ġlowe", "<|endoftext|>"});
  CHECK(tables.eos == 260);
  CHECK(!tables.bos);
  const Bpe bpe(tables);
  const int r = bpe.id("r").value(), s = bpe.id("s").value();
  CHECK(bpe.encode("low lower slow") == Ids{257, 259, r, bpe.id("Ġ").value(), s, 257});
}

TEST_CASE("by hand: bytes are in the order of the characters that stand for them") {
  const BpeTables tables = trained("", 0);
  CHECK(tables.tokens.size() == 256);
  CHECK(tables.tokens.front() == "!");    // the first byte that stands for itself
  CHECK(tables.tokens[93] == "~");        // the last one of ASCII
  CHECK(tables.tokens[94] == "¡");        // byte 0xa1
  CHECK(tables.tokens[187] == "ÿ");       // byte 0xff
  CHECK(tables.tokens[188] == "Ā");       // byte 0
  CHECK(tables.tokens[188 + 32] == "Ġ");  // a space
  CHECK(tables.tokens.back() == "Ń");     // byte 0xad
}

TEST_CASE("by hand: of equal counts the smaller ids come first") {
  // d·c is seen first, and b·a has smaller ids. After it c·ba, whose first id is less than d's.
  CHECK(merges_of("dcba dcba", 3) == "b a, c ba, d cba");
  // Of pairs that begin alike, the second id: x·y before x·z.
  CHECK(merges_of("xz,xz,xy,xy", 2) == "x y, x z");
  // Ġ comes behind x among the tokens, though a space comes before it among the bytes.
  CHECK(merges_of("-xy xy xy", 2) == "x y, Ġ xy");
}

TEST_CASE("by hand: a word counts as often as the text has it") {
  // n·o is in two different words, four times; o·f in three different words, three times.
  CHECK(merges_of("no no no no of off offer", 1) == "n o");
  // More often than 16 bits can count: y·z and Ġ·yz 70,001 times, a·b 70,000 times.
  std::string long_text;
  for (int i = 0; i < 70'000; ++i) long_text += " ab yz";
  CHECK(merges_of(long_text + " yz", 2) == "y z, Ġ yz");
}

TEST_CASE("by hand: no token crosses from one word into the next") {
  // a·b three times, then Ġ·ab twice, and every word is one token: nothing is left, though b stands
  // before a space twice.
  CHECK(merges_of("ab ab ab", 2, 1) == "a b, Ġ ab");
  REFUSES(trained("ab ab ab", 3, 1),
          "V, the vocabulary: wanted at most 258 for this text, got 259");
  CHECK(merges_of("12,12,12", 1, 1) == "1 2");
  REFUSES(trained("12,12,12", 2, 1),
          "V, the vocabulary: wanted at most 257 for this text, got 258");
}

TEST_CASE("by hand: in a row of one letter, pairs overlap, and are merged from the left") {
  // aaaaa has a·a four times, and becomes aa aa a. There aa·a and aa·aa are equal; a is the
  // smaller.
  CHECK(merges_of("aaaaa", 3, 1) == "a a, aa a, aa aaa");
  REFUSES(trained("aaaaa", 4, 1), "V, the vocabulary: wanted at most 259 for this text, got 260");
  // a·a counts twice in each aaa, four times in all, and b·c three times.
  CHECK(merges_of("aaa,aaa,bc,bc,bc", 2) == "a a, b c");
  // From the left, aaab is aa a b: a·b is still there.
  CHECK(merges_of("aaab,aaab,aaab", 2) == "a a, a b");
}

TEST_CASE("by hand: a merge takes away the pairs that it breaks, and brings new ones") {
  // a·b 5, b·c 4, x·y 3. After a·b only one b·c is left, and ab·c is there three times. Its ids are
  // larger than x·y's.
  CHECK(merges_of("abc,abc,abc,ab,ab,bc,xy,xy,xy", 3) == "a b, x y, ab c");
}

TEST_CASE("the vocabulary that the tokenizers library learns from the text, token by token") {
  const std::string text = fixture("bpe_text.txt");
  for (const std::string pre_tokenizer : {"gpt-2", "smollm"}) {
    CAPTURE(pre_tokenizer);
    Lines tokens, merges;
    std::istringstream lines(fixture(("bpe_" + pre_tokenizer + ".txt").c_str()));
    for (std::string line; std::getline(lines, line);) {
      const std::size_t space = line.find(' ');
      if (space != std::string::npos) merges.push_back(line);
      tokens.push_back(line.erase(std::min(space, line.size()), 1));
    }
    CHECK(merges.size() > 300);
    const BpeTables tables = train_bpe(text, {.V = tokens.size(), .pre_tokenizer = pre_tokenizer});
    CHECK(tables.pre_tokenizer == pre_tokenizer);
    CHECK(difference(tables.merges, merges) == "");
    CHECK(difference(tables.tokens, tokens) == "");
  }
  // Of the first one, these were all.
  REFUSES(train_bpe(text, {.V = 951}),
          "V, the vocabulary: wanted at most 950 for this text, got 951");
}

TEST_CASE("each merge is the most frequent pair of the text as chapter 10 reads it before") {
  const std::string text = beginning(2000);
  const BpeTables all = trained(text, 80);
  std::size_t count_before = text.size();
  for (std::size_t n = 0; n < all.merges.size(); ++n) {
    BpeTables tables = all;
    tables.merges.resize(n), tables.tokens.resize(256 + n), tables.kinds.resize(256 + n);
    const Bpe bpe(tables);
    std::map<std::pair<int, int>, std::size_t> counts;
    PreTokenizer(all.pre_tokenizer).for_each_word(text, [&](std::string_view word) {
      const Ids ids = bpe.encode(word);
      for (std::size_t i = 1; i < ids.size(); ++i) ++counts[{ids[i - 1], ids[i]}];
    });
    const std::string& merge = all.merges[n];
    const std::size_t space = merge.find(' ');
    const std::pair<int, int> pair = {bpe.id(merge.substr(0, space)).value_or(-1),
                                      bpe.id(merge.substr(space + 1)).value_or(-1)};
    CAPTURE(merge);
    for (const auto& [other, count] : counts) {
      if (other < pair) CHECK(count < counts[pair]);
      if (pair < other) CHECK(count <= counts[pair]);
    }
    CHECK(counts[pair] <= count_before);  // the counts of merges never rise
    count_before = counts[pair];
  }
}

TEST_CASE("counts that are kept up to date give what counting anew gives") {
  struct Case {
    std::string text;
    std::size_t V, least_count = 2;
  };
  const std::vector<Case> cases = {
      {beginning(6000), 500},
      {drawn_text(1, 3000, "ab"), 300},    // one word
      {drawn_text(2, 3000, "aab "), 350},  // short words, many rows of one letter
      {drawn_text(3, 2000, "abcdef "), 400},
      {drawn_text(4, 300, "abc "), 330, 1},
      {std::string(1000, 'a'), 263, 1},
      {"", 257},
  };
  for (const Case& c : cases)
    for (const std::string pre_tokenizer : {"gpt-2", "smollm", "llama-bpe"}) {
      CAPTURE(c.V);
      CAPTURE(pre_tokenizer);
      const BpeTraining options{
          .V = c.V, .pre_tokenizer = pre_tokenizer, .least_count = c.least_count};
      const BpeTables fast = train_bpe(c.text, options);
      const BpeTables anew = train_bpe_by_recounting(c.text, options);
      CHECK(fast.tokens.size() == c.V);
      CHECK(difference(fast.merges, anew.merges) == "");
      CHECK(difference(fast.tokens, anew.tokens) == "");
      CHECK(fast.kinds == anew.kinds);
      CHECK(fast.eos == anew.eos);
    }
}

/// All characters of one byte or two.
static std::string short_characters() {
  std::string text;
  for (int code = 0; code < 0x80; ++code) text += char(code);
  for (int code = 0x80; code < 0x800; ++code)
    text += {char(0xc0 | code >> 6), char(0x80 | (code & 0x3f))};
  return text;
}

TEST_CASE("V tokens, each merge of two before it, and texts become tokens and the same texts") {
  const std::string text = fixture("bpe_text.txt"), characters = short_characters();
  for (const std::string pre_tokenizer : {"gpt-2", "smollm", "llama-bpe", "qwen2"}) {
    CAPTURE(pre_tokenizer);
    const BpeTables tables = train_bpe(text, {.V = 700, .pre_tokenizer = pre_tokenizer});
    CHECK(tables.tokens.size() == 700);
    CHECK(tables.kinds.size() == 700);
    CHECK(tables.merges.size() == 700 - 256 - 1);
    const Bpe bpe(tables);  // refuses a token or a merge that stands twice
    for (std::size_t n = 0; n < tables.merges.size(); ++n) {
      const std::string& merge = tables.merges[n];
      const std::size_t space = merge.find(' ');
      const std::string left = merge.substr(0, space), right = merge.substr(space + 1);
      CHECK(bpe.id(left).value_or(700) < int(256 + n));
      CHECK(bpe.id(right).value_or(700) < int(256 + n));
      CHECK(tables.tokens[256 + n] == left + right);
    }
    for (const std::string& other : {text, std::string("été 😀 new words\r\n"), characters}) {
      const Ids ids = bpe.encode(other);
      CHECK(bpe.decode(ids) == (pre_tokenizer == "qwen2" ? to_nfc(other) : other));
      CHECK(ids.size() <= other.size());
    }
    CHECK(3 * bpe.encode(text).size() < 2 * text.size());
  }
}

TEST_CASE("spaces at the beginning, in the midst and at the end of a text come back") {
  for (const std::string pre_tokenizer : {"gpt-2", "smollm", "llama-bpe", "qwen2"}) {
    CAPTURE(pre_tokenizer);
    const Bpe bpe(trained("  two spaces,  two words   three  two spaces", 8, 2, pre_tokenizer));
    for (const std::string text : {"  two", "  ", " two  spaces ", "   \n  two\t  words  "})
      CHECK(bpe.decode(bpe.encode(text)) == text);
  }
}

TEST_CASE("a vocabulary for Qwen's rules is learned from the text in normal form C") {
  const std::string accents = "cafe\u0301 cafe\u0301 the\u0301 cafe\u0301",
                    letters = "café café thé café";
  CHECK(trained(accents, 4, 2, "qwen2").merges == trained(letters, 4, 2, "qwen2").merges);
  CHECK(trained(accents, 4).merges != trained(letters, 4).merges);
  REFUSES_AS(trained("ab\xff", 1, 2, "qwen2"),
             "text: byte 0xff at offset 2 is not UTF-8; save the text as UTF-8",
             std::runtime_error);
}

TEST_CASE("a smaller vocabulary is the beginning of a larger one") {
  const std::string text = fixture("bpe_text.txt");
  const BpeTables small = trained(text, 150), large = trained(text, 400);
  const Lines first_merges(large.merges.begin(), large.merges.begin() + 150);
  const Lines first_tokens(large.tokens.begin(), large.tokens.begin() + 406);
  CHECK(difference(first_merges, small.merges) == "");
  CHECK(difference(first_tokens, small.tokens) == "");
}

TEST_CASE("a pair needs least_count occurrences to become a token") {
  const std::string text = "ab ab ab cd cd";  // a·b 3, Ġ·ab 2, Ġ·c 2, c·d 2
  CHECK(merges_of(text, 1, 3) == "a b");
  REFUSES(trained(text, 2, 3), "V, the vocabulary: wanted at most 257 for this text, got 258");
  CHECK(merges_of(text, 4, 2) == "a b, c d, Ġ ab, Ġ cd");
  REFUSES(train_bpe_by_recounting(text, {259, "gpt-2", {}, 3}),
          "V, the vocabulary: wanted at most 257 for this text, got 259");
}

TEST_CASE("control tokens come last, are found only where asked for, and the first is eos") {
  const std::string text = fixture("bpe_text.txt");
  const Lines control = {"<|end|>", "<|user|>", "<|model|>"};
  const BpeTables tables = train_bpe(text, {.V = 300, .control = control});
  CHECK(Lines(tables.tokens.end() - 3, tables.tokens.end()) == control);
  CHECK(tables.eos == 297);
  const Bpe bpe(tables);
  for (int id = 0; id < 300; ++id)
    CHECK(bpe.kind(id) == (id < 297 ? TokenKind::normal : TokenKind::control));
  CHECK(bpe.encode("<|user|><|end|>", SpecialTokens::as_tokens) == Ids{298, 297});
  CHECK(bpe.encode("<|end|>").size() > 1);
  CHECK(!trained(text, 10).eos);
}

TEST_CASE("chapter 10 reads the vocabulary from a model's file") {
  const BpeTables tables = train_bpe(fixture("bpe_text.txt"), {.V = 400});
  const Config config{.block = llama_style(8, 2, 1, 12), .L = 1, .V = 400, .T_max = 16};
  ModelWeights weights = room_for(config);
  for_each_tensor(weights, config,
                  [](const TensorInfo& info, auto& tensor) { fill_numbers(info, 0, tensor); });
  const BpeTables got =
      read_tables(GgufFile("x", model_bytes(config, weights, tables, "a small model")));
  CHECK(got.pre_tokenizer == tables.pre_tokenizer);
  CHECK(difference(got.tokens, tables.tokens) == "");
  CHECK(got.kinds == tables.kinds);
  CHECK(difference(got.merges, tables.merges) == "");
  CHECK(got.eos == tables.eos);
}

TEST_CASE("after each merge its number is told, and what is thrown there ends the training") {
  std::vector<std::size_t> told;
  train_bpe("dcba dcba", {.V = 260}, [&](std::size_t merges) { told.push_back(merges); });
  CHECK(told == std::vector<std::size_t>{1, 2, 3});
  CHECK_THROWS_AS(train_bpe("dcba dcba", {.V = 260},
                            [](std::size_t merges) {
                              if (merges == 2) throw std::out_of_range("enough");
                            }),
                  std::out_of_range);
}

TEST_CASE("one long word takes no longer than short ones" * doctest::test_suite("slow")) {
  for (const char* letters : {"abcdefghijklmnop", "aaaaaaab"}) {
    const std::string text = drawn_text(5, 300000, letters);
    const std::clock_t start = std::clock();
    CHECK(trained(text, 1000).tokens.size() == 1256);
    CHECK(double(std::clock() - start) / CLOCKS_PER_SEC < 5);  // 0.3 s; word by word, minutes
  }
}

TEST_CASE("what is refused, with its message") {
  const std::string text = "ab ab ab";
  REFUSES(train_bpe(text, {.V = 256}),
          "V, the vocabulary: wanted at least 257, the bytes and the control tokens, got 256");
  REFUSES(train_bpe_by_recounting(text, {.V = 0, .control = {}}),
          "V, the vocabulary: wanted at least 256, the bytes and the control tokens, got 0");
  REFUSES(train_bpe(text, {.V = 260}),
          "V, the vocabulary: wanted at most 259 for this text, got 260");
  REFUSES(train_bpe("", {.V = 258}),
          "V, the vocabulary: wanted at most 257 for this text, got 258");
  REFUSES(trained(text, 1, 0), "least_count, of a pair: wanted at least 1, got 0");

  const auto with_control = [&](Lines control) {
    return train_bpe(text, {.V = 258 + control.size(), .control = control});
  };
  REFUSES(with_control({""}), "control token \"\": wanted 1 to 256 bytes, got 0");
  REFUSES(with_control({std::string(257, 'x')}),  // of which the message has the first 60
          "control token \"" + std::string(60, 'x') + "…\": wanted 1 to 256 bytes, got 257");
  REFUSES(with_control({"\xff"}), "control token \"\\xff\": wanted UTF-8, got other bytes");
  REFUSES(with_control({"xyz", "a"}),
          "control token \"a\": wanted a name of its own, got another token's");
  REFUSES(with_control({"<|a|>", "<|a|>"}),
          "control token \"<|a|>\": wanted a name of its own, got another token's");
  REFUSES(with_control({"ab"}),
          "control token \"ab\": wanted a name of its own, got another token's");

  REFUSES_AS(train_bpe("ab\xff", {.V = 257}),
             "text: byte 0xff at offset 2 is not UTF-8; save the text as UTF-8",
             std::runtime_error);
  REFUSES_AS(train_bpe(std::string((1 << 22) + 1, 'a'), {.V = 257}),
             "a word of 4194305 bytes, wanted at most 4194304", std::runtime_error);
  REFUSES_AS(train_bpe(text, {.V = 257, .pre_tokenizer = "none"}),
             "pre-tokenizer \"none\" is not known here; wanted one of gpt-2, smollm, llama-bpe, "
             "qwen2, gpt-4o, deepseek-llm, deepseek-v3",
             std::runtime_error);
}

}  // namespace t2t::bpe_test
