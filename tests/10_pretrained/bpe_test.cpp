// What must be true of tokens: words, merges, special tokens, and text that streams.
#include <doctest/doctest.h>

#include <algorithm>
#include <ctime>
#include <map>
#include <stdexcept>

#include "10_pretrained/file/gguf_bytes.hpp"
#include "10_pretrained/model/tokenizer.hpp"
#include "10_pretrained/token_lines.hpp"
#include "10_pretrained/tokenizer/byte_alphabet.hpp"
#include "10_pretrained/tokenizer/unicode.hpp"
#include "random.hpp"
#include "support/apart.hpp"
#include "support/lists.hpp"
#include "support/refuses.hpp"

namespace t2t::bpe_test {

using Words = std::vector<std::string_view>;

static Words words(std::string_view text, std::string_view pre_tokenizer = "smollm") {
  Words words;
  PreTokenizer(pre_tokenizer).for_each_word(text, [&](std::string_view word) {
    words.push_back(word);
  });
  return words;
}

/// The letters a to e and a space, what the merges make of them, and three more.
static BpeTables small_tables(std::vector<std::string> merges) {
  BpeTables tables{"x", "gpt-2", {"a", "b", "c", "d", "e", "Ġ"}, {}, std::move(merges), {}, {}};
  for (std::string merge : tables.merges) {
    merge.erase(merge.find(' '), 1);
    tables.tokens.push_back(merge);
  }
  tables.kinds.assign(tables.tokens.size(), TokenKind::normal);
  return tables;
}
static void add(BpeTables& tables, const char* token, TokenKind kind) {
  tables.tokens.push_back(token);
  tables.kinds.push_back(kind);
}
static Ids encode(const std::vector<std::string>& merges, std::string_view text) {
  return Bpe(small_tables(merges)).encode(text);
}

TEST_CASE("a file is read, and texts become tokens and texts again: without a crash, and it ends") {
  CHECK(ending_apart([] {
          BpeTables tables = small_tables({"a b", "ab c"});
          add(tables, "<|ab", TokenKind::control);
          add(tables, "<|ab|>", TokenKind::control);
          add(tables, "cd", TokenKind::added);
          for (const char* pre_tokenizer : {"gpt-2", "smollm", "llama-bpe"}) {
            tables.pre_tokenizer = pre_tokenizer;
            const Bpe bpe(tables);
            for (const char* text : {"", "abc", "abcabcabcabc", "a<|ab|>cd<|ab", "cd a 7\n"})
              bpe.decode(bpe.encode(text, SpecialTokens::as_tokens));
          }
        }) == "returned");
  CHECK(ending_apart([] {
          const GgufFile file = GgufFile::open(T2T_FIXTURES "/tokenizer.gguf");
          read_tokenizer(file).encode("ab <|im_end|>", SpecialTokens::as_tokens);
          const GgufFile of_tensors = GgufFile::open(T2T_FIXTURES "/tensors.gguf");
          of_tensors.vector("gain", 9);
        }) == "returned");
}

TEST_CASE("by hand: words keep the space before them; digits stand alone for smollm") {
  CHECK(words("It's 2 dogs") == Words{"It", "'s", " ", "2", " dogs"});
  CHECK(words("It's 2 dogs", "gpt-2") == Words{"It", "'s", " 2", " dogs"});
  CHECK(words("in 1984!") == Words{"in", " ", "1", "9", "8", "4", "!"});
  CHECK(words("in 1984!", "gpt-2") == Words{"in", " 1984", "!"});
  CHECK(words("a   b") == Words{"a", "  ", " b"});
  CHECK(words("a  7") == Words{"a", "  ", "7"});
  CHECK(words("a  7", "gpt-2") == Words{"a", " ", " 7"});
  CHECK(words("x \n y") == Words{"x", " \n", " y"});
  CHECK(words("IT'S été…") == Words{"IT", "'", "S", " été", "…"});
  CHECK(words("") == Words{});
}

TEST_CASE(
    "by hand: Llama 3's words may begin with a sign; digits by threes; line ends with signs") {
  CHECK(words("It's (2024)!\n\n x", "llama-bpe") ==
        Words{"It", "'s", " (", "202", "4", ")!\n\n", " x"});
  CHECK(words("It's (2024)!\n\n x", "qwen2") ==
        Words{"It", "'s", " (", "2", "0", "2", "4", ")!\n\n", " x"});
  for (const std::string name : {"llama-bpe", "qwen2"}) {
    CAPTURE(name);
    CHECK(words("IT'S a.b _x", name) == Words{"IT", "'S", " a", ".b", " _", "x"});
    CHECK(words("it'\u017fx", name) == Words{"it", "'\u017f", "x"});  // an old s is an s
    CHECK(words("a  7", name) == Words{"a", " ", " ", "7"});
    CHECK(words("a \n  \n  b", name) == Words{"a", " \n  \n", " ", " b"});
  }
}

TEST_CASE(
    "by hand: capitals begin a word for gpt-oss; DeepSeek's patterns cut one after the other") {
  CHECK(words("XMLHttp isn'T a//\n", "gpt-4o") == Words{"XMLHttp", " isn'T", " a", "//\n"});
  CHECK(words("HelloWorld 12345", "gpt-4o") == Words{"Hello", "World", " ", "123", "45"});
  CHECK(words("x12345y", "deepseek-v3") == Words{"x", "123", "45", "y"});
  CHECK(words("#tag (a) \u4f60\u597d\u3042", "deepseek-v3") ==
        Words{"#tag", " (", "a", ")", " ", "\u4f60\u597d\u3042"});
  CHECK(words("It's 2024!\n\n", "deepseek-llm") ==
        Words{"It", "'", "s", " ", "2", "0", "2", "4", "!", "\n", "\n"});
  // Digits of Hindi are in the range of Chinese, and are cut out of it afterwards.
  CHECK(words("\u0905\u0966\u0967", "deepseek-llm") == Words{"\u0905", "\u0966", "\u0967"});
}

TEST_CASE("U+180E is not a space; other wide and no-break spaces are") {
  CHECK(words("a\u180eb") == Words{"a", "\u180e", "b"});
  CHECK(words("a \u180e") == Words{"a", " \u180e"});
  CHECK(words("a\u00a0\u3000b") == Words{"a", "\u00a0", "\u3000", "b"});
  CHECK(words("\u180e\n", "qwen2") == Words{"\u180e\n"});
  CHECK(words("\u3000\n", "qwen2") == Words{"\u3000\n"});
}

TEST_CASE("long words of one kind are split in linear time" * doctest::test_suite("slow")) {
  const std::size_t many = 1000000;
  for (const std::string name : {"smollm", "llama-bpe", "qwen2", "gpt-4o", "deepseek-v3"}) {
    CAPTURE(name);
    for (const char* letter : {"a", " ", "!", "é", "\n"}) {
      std::string text;
      for (std::size_t i = 0; i < many; ++i) text += letter;
      CHECK(words(text, name).size() == 1);
      CHECK(words(text + "7", name).size() <= 3);
    }
    const std::size_t digits = name == "smollm" || name == "qwen2" ? 1 : 3;
    CHECK(words(std::string(300000, '7'), name).size() == 300000 / digits);
  }
  // Behind so many spaces there might have been a line's end.
  CHECK(words(std::string(12 * many, ' '), "qwen2").size() == 1);
}

TEST_CASE("by hand: the merge learned first is made first, not the longest nor the leftmost") {
  // b·c comes first, so a·b never gets its b.
  CHECK(encode({"b c", "a b"}, "abc") == Ids{0, 6});
  CHECK(encode({"a b", "b c"}, "abc") == Ids{6, 2});
  // The longest token, abc, is there but needs ab, which b·c prevents.
  CHECK(encode({"b c", "a b", "ab c"}, "abc") == Ids{0, 6});
  // Of equal ones the leftmost: aa·a, not a·aa.
  CHECK(encode({"a a"}, "aaa") == Ids{6, 0});
  CHECK(encode({"a a", "aa aa"}, "aaaaaaa") == Ids{7, 6, 0});
  // A merge can make room for one that was learned earlier.
  CHECK(encode({"ab c", "a b", "b c"}, "abc") == Ids{6});
  // Once b·c is made, a·b is gone: what stands at a now waits for its own turn, after bc·d.
  CHECK(encode({"b c", "a b", "bc d", "a bc"}, "abcd") == Ids{0, 8});
  CHECK(encode({"Ġ a"}, "a a") == Ids{0, 6});
}

TEST_CASE("pairs of ids up to 151,935 have a merge each, and keep the first that they are given") {
  const int ids[] = {0, 1, 255, 256, 65535, 65536, 151935};
  MergeTable table;
  int merges = 0;
  for (const int left : ids)
    for (const int right : ids) {
      CAPTURE(left);
      CAPTURE(right);
      CHECK(!table.find(left, right));
      CHECK(table.add(left, right, {std::uint32_t(merges), 200000 + merges}));
      ++merges;
      CHECK(!table.add(left, right, {7000, 7}));  // changes nothing
    }
  CHECK(table.size() == 49);
  merges = 0;
  for (const int left : ids)
    for (const int right : ids) {
      CAPTURE(left);
      CAPTURE(right);
      const Merge* const found = table.find(left, right);
      const Merge merge = found == nullptr ? Merge{9000, 9} : *found;
      CHECK(merge.rank == std::uint32_t(merges));
      CHECK(merge.result == 200000 + merges);
      ++merges;
    }
}

/// Encodes the texts of a file of tests/fixtures by each line's pre-tokenizer, and compares the
/// ids.
static void expect_equal_ids(const char* path, std::size_t count) {
  const GgufFile file = GgufFile::open(T2T_FIXTURES "/tokenizer.gguf");
  std::map<std::string, Bpe> by_name;
  const std::vector<TokenLine> lines = read_token_lines(path);
  CHECK(lines.size() == count);
  for (const TokenLine& line : lines) {
    if (!by_name.contains(line.pre_tokenizer)) {
      BpeTables tables = read_tables(file);
      tables.pre_tokenizer = line.pre_tokenizer;
      by_name.emplace(line.pre_tokenizer, tables);
    }
    CAPTURE(line.pre_tokenizer);
    CAPTURE(line.special);
    CAPTURE(line.shown);
    const Bpe& bpe = by_name.at(line.pre_tokenizer);
    const SpecialTokens special =
        line.special == "as_tokens" ? SpecialTokens::as_tokens : SpecialTokens::as_text;
    std::size_t left_out = 0;
    const Ids ids = bpe.encode(line.text, special, &left_out);
    CHECK(ids == line.ids);
    const std::string text = line.pre_tokenizer == "qwen2" ? to_nfc(line.text) : line.text;
    if (left_out == 0) CHECK(bpe.decode(ids) == text);
    CHECK(bpe.decode(ids).size() + left_out == text.size());
  }
}

TEST_CASE("ids equal those of the tokenizers library on every text") {
  expect_equal_ids(T2T_FIXTURES "/tokens.txt", 4 * 138);
}

TEST_CASE("ids by the patterns of gpt-oss and DeepSeek equal those of the tokenizers library") {
  expect_equal_ids(T2T_FIXTURES "/tokens_later.txt", 3 * 148);
}

TEST_CASE("Qwen's tokenizer puts a text into Unicode's normal form C, the others do not") {
  const GgufFile file = GgufFile::open(T2T_FIXTURES "/tokenizer.gguf");
  BpeTables tables = read_tables(file);
  const Bpe smollm(tables);
  tables.pre_tokenizer = "qwen2";
  const Bpe qwen(tables);
  const std::vector<NormalLine> lines = read_normal_lines(T2T_FIXTURES "/nfc.txt");
  CHECK(lines.size() == 61);
  for (const NormalLine& line : lines) {
    CAPTURE(line.shown);
    CHECK(to_nfc(line.text) == line.normal);
    CHECK(to_nfc(line.normal) == line.normal);
    std::size_t left_out = 1;
    CHECK(qwen.encode(line.text, SpecialTokens::as_text, &left_out) == line.ids);
    CHECK(left_out == 0);
    CHECK(qwen.encode(line.normal) == line.ids);
    CHECK(qwen.decode(line.ids) == line.normal);
    CHECK(smollm.decode(smollm.encode(line.text)) == line.text);
  }
}

TEST_CASE("by hand: accents join their letter and stand in order; marks of tokens part a text") {
  CHECK(to_nfc("e\u0301") == "é");
  CHECK(to_nfc("a\u0301\u0323") == "\u1ea1\u0301");  // the dot below comes first, and joins
  CHECK(to_nfc("\u1100\u1161\u11a8") == "\uac01");
  CHECK(to_nfc("\u0438\u0306") == "\u0439");
  CHECK(to_nfc("\u212b") == "\u00c5");        // Ångström's sign is the letter
  CHECK(to_nfc("\u0958") == "\u0915\u093c");  // excluded: written in two
  CHECK(to_nfc("") == "");
  CHECK(to_nfc(std::string_view("\0e\u0301\0", 5)) == std::string_view("\0é\0", 4));
  REFUSES_AS(to_nfc("ab\xff"), "text: byte 0xff at offset 2 is not UTF-8; save the text as UTF-8",
             std::runtime_error);

  BpeTables tables = small_tables({});
  tables.pre_tokenizer = "qwen2";
  add(tables, "<|m|>", TokenKind::control);                                            // 6
  for (const char* byte : {"Ã", "©", "Ì", "ģ"}) add(tables, byte, TokenKind::normal);  // 7 to 10
  const Bpe bpe(tables);
  CHECK(bpe.encode("e\u0301", SpecialTokens::as_tokens) == Ids{7, 8});
  CHECK(bpe.encode("e<|m|>\u0301", SpecialTokens::as_tokens) == Ids{4, 6, 9, 10});
}

TEST_CASE("a megabyte of accents in the wrong order is put in order at once" *
          doctest::test_suite("slow")) {
  std::string text = "a";
  for (int i = 0; i < 250000; ++i) text += "\u0301\u0323";  // above, below
  const std::clock_t start = std::clock();
  const std::string normal = to_nfc(text);
  CHECK(double(std::clock() - start) / CLOCKS_PER_SEC < 2);  // 0.1 s; pair by pair, minutes
  // One dot below joins the a; the others come before all accents above.
  CHECK(normal.size() == 3 + 4 * 250000 - 2);
  CHECK(normal.starts_with("\u1ea1\u0323"));
  CHECK(normal.ends_with("\u0301\u0301"));
}

TEST_CASE("by hand: Llama 3 does not merge a word that is itself a token") {
  BpeTables tables = small_tables({"a b", "b c"});
  for (const char* token : {"abc", "Ġabc"}) add(tables, token, TokenKind::normal);
  CHECK(Bpe(tables).encode("abc abc") == Ids{6, 2, 5, 6, 2});
  tables.pre_tokenizer = "llama-bpe";
  CHECK(Bpe(tables).encode("abc abc") == Ids{8, 9});
  CHECK(Bpe(tables).encode("abcd bc") == Ids{6, 2, 3, 5, 7});
  // A control token is no word of a text, even if all of it is one.
  tables.kinds[8] = TokenKind::control;
  CHECK(Bpe(tables).encode("abc abc") == Ids{6, 2, 9});
}

TEST_CASE("a text begins with bos if the file says so; otherwise the pre-tokenizer decides") {
  BpeTables tables = small_tables({"a b"});
  tables.bos = 4;
  CHECK(!Bpe(tables).first());
  tables.bos_first = true;
  CHECK(Bpe(tables).first() == 4);
  tables.pre_tokenizer = "llama-bpe";
  tables.bos_first.reset();
  CHECK(Bpe(tables).first() == 4);
  tables.bos_first = false;
  CHECK(!Bpe(tables).first());
  tables.bos_first = true, tables.bos.reset();
  CHECK(!Bpe(tables).first());
}

TEST_CASE(
    "a file without types has normal tokens alone, and it may say that texts begin with bos") {
  GgufBytes file;
  file.header(0, 6).entry("tokenizer.ggml.model", "gpt2").entry("tokenizer.ggml.pre", "gpt-2");
  file.entry("tokenizer.ggml.tokens", std::vector<std::string>{"a", "b", "ab"});
  file.entry("tokenizer.ggml.merges", std::vector<std::string>{"a b"});
  file.entry("tokenizer.ggml.add_bos_token", true);
  file.text("tokenizer.ggml.eom_token_id").put(5u).put(2);
  const BpeTables tables = read_tables(GgufFile("x", file.bytes));
  CHECK(tables.kinds == std::vector<TokenKind>(3, TokenKind::normal));
  CHECK(tables.bos_first == true);
  CHECK(!tables.bos);
  CHECK(!tables.eos);
  CHECK(tables.eom == 2);
  GgufBytes other;
  other.header(0, 1).entry("tokenizer.ggml.model", "llama");
  REFUSES_AS(read_tables(GgufFile("x", other.bytes)),
             "x: tokenizer.ggml.model: wanted gpt2, a byte-level BPE, got llama, SentencePiece's, "
             "which is not built",
             std::runtime_error);
}

TEST_CASE("the id of a token that is not there is refused with its key and its value") {
  for (const char* name : {"bos", "eos", "eot", "eom"}) {
    const std::string key = std::string("tokenizer.ggml.") + name + "_token_id";
    const auto read = [&](auto put) {
      GgufBytes file;
      file.header(0, 5).entry("tokenizer.ggml.model", "gpt2").entry("tokenizer.ggml.pre", "gpt-2");
      file.entry("tokenizer.ggml.tokens", std::vector<std::string>{"a", "b", "ab"});
      file.entry("tokenizer.ggml.merges", std::vector<std::string>{"a b"});
      put(file);
      return read_tables(GgufFile("x", file.bytes));
    };
    const auto refused = [&](auto put, const std::string& message) {
      REFUSES_AS(read(put), "x: " + key + ": wanted " + message, std::runtime_error);
    };
    refused([&](GgufBytes& file) { file.text(key).put(5u).put(-100); },
            "one of 3 tokens, got -100");
    refused([&](GgufBytes& file) { file.entry(key, 3u); }, "one of 3 tokens, got 3");
    refused([&](GgufBytes& file) { file.entry(key, 4294967295u); },
            "one of 3 tokens, got 4294967295");
    refused([&](GgufBytes& file) { file.entry(key, 0.5f); }, "an integer, got 0.5");
    refused([&](GgufBytes& file) { file.entry(key, "a"); }, "an integer, got \"a\"");
    refused([&](GgufBytes& file) { file.entry(key, std::vector<std::int32_t>{1}); },
            "an integer, got 1 numbers");
  }
}

TEST_CASE("what a model says ends with any of the ids that the file names, or that have a name") {
  BpeTables tables = small_tables({"a b"});
  for (const char* mark : {"<|im_end|>", "<|endoftext|>", "<|end_of_text|>", "<|eom_id|>",
                           "<|im_start|>", "<|mine|>", "<|other|>"})
    add(tables, mark, TokenKind::control);      // 7 to 13
  add(tables, "<|eot_id|>", TokenKind::added);  // 14
  CHECK(Bpe(tables).ends() == Ids{7, 8, 9, 10});
  tables.eos = 7, tables.eot = 12, tables.eom = 10;
  CHECK(Bpe(tables).ends() == Ids{7, 8, 9, 10, 12});
  tables.kinds[14] = TokenKind::control;
  CHECK(Bpe(tables).ends() == Ids{7, 8, 9, 10, 12, 14});
  CHECK(Bpe(small_tables({"a b"})).ends().empty());
  for (std::optional<int> BpeTables::*id : {&BpeTables::eot, &BpeTables::eom}) {
    BpeTables bad = tables;
    bad.*id = 15;
    REFUSES_AS(Bpe{bad},
               std::string("x: ") + (id == &BpeTables::eot ? "eot" : "eom") +
                   " is token 15, outside a vocabulary of 15",
               std::runtime_error);
  }
}

TEST_CASE("control tokens that a model says are never shown; added ones are text") {
  BpeTables tables = small_tables({"a b"});
  add(tables, "<|im_start|>", TokenKind::control);  // 7
  add(tables, "<think>", TokenKind::added);         // 8
  add(tables, "Ã", TokenKind::normal);              // 9, the first byte of é
  add(tables, "©", TokenKind::normal);              // 10, the second
  const Bpe bpe(tables);
  CHECK(bpe.said(Ids{6, 7, 8, 7, 2}) == "ab<think>c");
  CHECK(bpe.decode(Ids{6, 7, 2}) == "ab<|im_start|>c");
  StreamingDecoder decoder(bpe);
  CHECK(decoder.push(7) == "");
  CHECK(decoder.push(8) == "<think>");
  CHECK(decoder.push(9) == "");
  CHECK(decoder.push(7) == "");
  CHECK(decoder.push(10) == "é");
  CHECK(decoder.finish() == "");
}

TEST_CASE("a stream returns whole characters, which together are the text") {
  const Bpe bpe = read_tokenizer(GgufFile::open(T2T_FIXTURES "/tokenizer.gguf"));
  for (const TokenLine& line : read_token_lines(T2T_FIXTURES "/tokens.txt")) {
    StreamingDecoder decoder(bpe);
    std::string text;
    for (const int id : line.ids) {
      const std::string shown = decoder.push(id);
      CHECK(is_utf8(shown));
      text += shown;
    }
    text += decoder.finish();
    CHECK(text == bpe.said(line.ids));
  }
}

TEST_CASE("by hand: an emoji of four tokens appears with the last; broken text is U+FFFD") {
  CharacterStream stream;
  CHECK(stream.push("\xf0") == "");
  CHECK(stream.push("\x9f\x98") == "");
  CHECK(stream.push("\x80!") == "😀!");
  CHECK(stream.push("a\xc3") == "a");
  CHECK(stream.push("b") ==
        "\ufffd"
        "b");  // what the next byte shows to be broken
  CHECK(stream.push("\xe2\x82") == "");
  CHECK(stream.finish() == "\ufffd");
  CHECK(stream.finish() == "");
  // As Python's bytes.decode(errors="replace") has it.
  CHECK(stream.push("\xf0\x9f\x41\xff\xc0\xaf\xed\xa0\x80\xf4\x90") ==
        "\ufffd"
        "A"
        "\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd");
}

TEST_CASE("control characters are removed before printing; line ends, tabs and letters stay") {
  CHECK(without_controls("a\tb\n\033[2Jc\x7f\xc2\x9b"
                         "2J é😀") == "a\tb\n[2Jc2J é😀");
  CHECK(without_controls("a\xff\xc3") == "a");
  CHECK(without_controls("a\x01\b\r") == "a");
}

TEST_CASE("special tokens are found where allowed, the longest first; added ones always") {
  BpeTables tables = small_tables({"a b"});
  add(tables, "<|ab", TokenKind::control);    // 7
  add(tables, "<|ab|>", TokenKind::control);  // 8
  add(tables, "cd", TokenKind::added);        // 9
  for (const char* sign : {"<", "|", ">"}) add(tables, sign, TokenKind::normal);
  const Bpe bpe(tables);
  CHECK(bpe.encode("a<|ab|>cd") == Ids{0, 10, 11, 6, 11, 12, 9});
  CHECK(bpe.encode("a<|ab|>cd", SpecialTokens::as_tokens) == Ids{0, 8, 9});
  CHECK(bpe.encode("<|ab|<|ab", SpecialTokens::as_tokens) == Ids{7, 11, 7});
  CHECK(bpe.encode("<|ab|c", SpecialTokens::as_tokens) == Ids{7, 11, 2});
  CHECK(bpe.encode("ccd", SpecialTokens::as_tokens) == Ids{2, 9});
  CHECK(bpe.encode("<|ac", SpecialTokens::as_tokens) == Ids{10, 11, 0, 2});
  CHECK(bpe.encode("<|ac", SpecialTokens::as_tokens) == Ids{10, 11, 0, 2});
  CHECK(bpe.decode(Ids{8, 0}) == "<|ab|>a");
  CHECK(bpe.id("<|ab|>") == 8);
  CHECK(!bpe.id("nothing"));
  CHECK(bpe.kind(8) == TokenKind::control);
}

TEST_CASE("of tokens with a common beginning the longest is found, as by comparing with all") {
  // a, ab, aba, abab … and other words of a and b, drawn at random.
  Random random(1);
  const auto draw = [&](std::size_t most) {
    std::string word;
    for (std::size_t n = std::size_t(random.next_uniform() * double(most)) + 1; n > 0; --n)
      word += random.next_uniform() < 0.5 ? 'a' : 'b';
    return word;
  };
  std::map<std::string, int> ids;
  for (int i = 0; i < 12; ++i) ids.emplace(draw(6), i);
  ids.emplace("ababab", 12), ids.emplace("abababb", 13);
  const TokenFinder finder(ids);
  for (int i = 0; i < 500; ++i) {
    const std::string text = draw(9);
    int longest = -1;
    for (std::size_t n = 1; n <= text.size(); ++n)
      if (const auto at = ids.find(text.substr(0, n)); at != ids.end()) longest = at->second;
    const auto found = finder.find(text);
    CAPTURE(text);
    CHECK((found ? found->id : -1) == longest);
  }
  CHECK(!TokenFinder().find("a"));
}

TEST_CASE("searching many tokens with a common beginning takes no longer than searching a few") {
  BpeTables tables = small_tables({});
  for (std::size_t n = 1; n < 256; ++n)
    add(tables, (std::string(n, 'a') + "!").c_str(), TokenKind::added);
  const Bpe bpe(tables);
  const std::clock_t start = std::clock();
  CHECK(bpe.encode(std::string(40000, 'a')).size() == 40000);
  CHECK(double(std::clock() - start) / CLOCKS_PER_SEC < 1);  // 0.05 s; one by one, 2 s
}

TEST_CASE("the byte alphabet can be undone, and makes all bytes visible") {
  CHECK(to_byte_alphabet(" é\n") == "ĠÃ©Ċ");
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += char(byte);
  CHECK(from_byte_alphabet(to_byte_alphabet(all)) == all);
  CHECK(is_utf8(to_byte_alphabet(all)));
  CHECK(to_byte_alphabet("\xff\x7f\xa0\xad") == "ÿġłŃ");
  for (const char* wrong : {" ", "\u0144", "\u00ad", "你", "\x80", "\xc4", "\xff"})
    CHECK(!from_byte_alphabet(wrong));
}

TEST_CASE("a megabyte of one letter takes a few look-ups for each letter, in any order of merges" *
          doctest::test_suite("slow")) {
  for (const std::vector<std::string>& merges :
       {std::vector<std::string>{"a a", "aa aa", "aaaa aaaa"}, {"aa aa", "a a"}, {"aa a", "a a"}}) {
    const BpeTables tables = small_tables(merges);
    MergeTable table;
    const auto id = [&](const std::string& token) {
      return int(std::find(tables.tokens.begin(), tables.tokens.end(), token) -
                 tables.tokens.begin());
    };
    for (std::size_t rank = 0; rank < merges.size(); ++rank) {
      const std::size_t space = merges[rank].find(' ');
      const std::string left = merges[rank].substr(0, space),
                        right = merges[rank].substr(space + 1);
      CHECK(table.add(id(left), id(right), {std::uint32_t(rank), id(left + right)}));
    }
    PairMerger merger(table);
    Ids symbols(1 << 20, 0);
    merger.run(symbols);
    CHECK(symbols.size() <= 1 << 19);
    CHECK(merger.lookups() <= 5 << 20);
  }
}

TEST_CASE("bytes without a token are left out and counted") {
  std::size_t left_out = 0;
  CHECK(Bpe(small_tables({"a b"})).encode("axyb", SpecialTokens::as_text, &left_out) == Ids{6});
  CHECK(left_out == 2);
}

TEST_CASE("bad input is refused, with its message") {
  const Bpe bpe(small_tables({"a b"}));
  REFUSES_AS(bpe.encode("ab\xff"),
             "text: byte 0xff at offset 2 is not UTF-8; save the text as UTF-8",
             std::runtime_error);
  REFUSES(bpe.decode(Ids{0, 7}), "id 7: the vocabulary has 7 tokens");
  CHECK_THROWS_AS(bpe.bytes(-1), std::invalid_argument);
  REFUSES_AS(bpe.encode(std::string(5000000, 'a')),
             "a word of 5000000 bytes, wanted at most 4194304", std::runtime_error);
  REFUSES_AS(PreTokenizer("llama"),
             "pre-tokenizer \"llama\" is not known here; wanted one of gpt-2, smollm, "
             "llama-bpe, qwen2, gpt-4o, deepseek-llm, deepseek-v3",
             std::runtime_error);

  const auto made = [](auto change) {
    BpeTables tables = small_tables({"a b"});
    change(tables);
    return Bpe(tables);
  };
  using T = BpeTables&;
  REFUSES_AS(made([](T t) { t.pre_tokenizer = "other"; }),
             "x: pre-tokenizer \"other\" is not known here; wanted one of gpt-2, "
             "smollm, llama-bpe, qwen2, gpt-4o, deepseek-llm, deepseek-v3",
             std::runtime_error);
  REFUSES_AS(made([](T t) { t.merges.push_back("a b"); }), "x: merge 1 \"a b\" occurs twice",
             std::runtime_error);
  REFUSES_AS(made([](T t) { t.merges.push_back("a  b"); }),
             "x: merge 1 \"a  b\" is not two tokens with a space between", std::runtime_error);
  REFUSES_AS(made([](T t) { t.merges.push_back("b c"); }),
             "x: merge 1 \"b c\" needs \"bc\", no normal token", std::runtime_error);
  REFUSES_AS(made([](T t) { t.merges.push_back("b "); }),
             "x: merge 1 \"b \" needs \"\", no normal token", std::runtime_error);
  // Neither a part of a merge nor what it makes may be a control token.
  const char* of_control = "x: merge 1 \"a <x>\" needs \"<x>\", no normal token";
  REFUSES_AS(made([](T t) {
               add(t, "<x>", TokenKind::control), add(t, "a<x>", TokenKind::normal);
               t.merges.push_back("a <x>");
             }),
             of_control, std::runtime_error);
  REFUSES_AS(made([](T t) { add(t, "ac", TokenKind::control), t.merges.push_back("a c"); }),
             "x: merge 1 \"a c\" needs \"ac\", no normal token", std::runtime_error);
  REFUSES_AS(made([](T t) { t.tokens[1] = "a"; }), "x: token 1 \"a\" occurs twice",
             std::runtime_error);
  REFUSES_AS(made([](T t) { t.tokens[2] = "你"; }),
             "x: token 2 \"你\" contains a character that stands for no byte", std::runtime_error);
  REFUSES_AS(made([](T t) { t.kinds[2] = TokenKind::byte; }),
             "x: token 2 \"c\" is of type 6, wanted 1 to 5", std::runtime_error);
  REFUSES_AS(made([](T t) { add(t, "", TokenKind::control); }),
             "x: token 7 \"\" is empty or not UTF-8", std::runtime_error);
  const std::string letters(60, 'a');
  REFUSES_AS(made([](T t) { add(t, std::string(257, 'a').c_str(), TokenKind::added); }),
             "x: token 7 \"" + letters + "…\" has 257 bytes, wanted at most 256",
             std::runtime_error);
  REFUSES_AS(made([](T t) { t.kinds.pop_back(); }), "x: 7 tokens with 6 types", std::runtime_error);
  REFUSES_AS(made([](T t) { t.eos = 7; }), "x: eos is token 7, outside a vocabulary of 7",
             std::runtime_error);
}

}  // namespace t2t::bpe_test
