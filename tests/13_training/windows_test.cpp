// What must be true of what a step sees: passages of a text, and windows of its tokens.
#include <doctest/doctest.h>

#include <algorithm>
#include <exception>
#include <map>
#include <set>
#include <string>

#include "13_training/cases.hpp"
#include "13_training/text/passages.hpp"
#include "files/npy.hpp"
#include "support/hashed_numbers.hpp"
#include "support/lists.hpp"
#include "support/refuses.hpp"

namespace t2t::windows_test {

using std::size_t;

/// The first letter of each paragraph, and whether the text is these paragraphs.
static std::string letters_of(const std::string& text, size_t length) {
  std::string letters, whole;
  for (size_t from = 0; from < text.size(); from = text.find("\n\n", from) + 2) {
    letters += text[from], whole += std::string(length, text[from]) + "\n\n";
    if (text.find("\n\n", from) == text.npos) break;
  }
  return text == whole ? letters : letters + ", and not whole";
}

TEST_CASE("by hand: passages of three paragraphs, of which every second one is held out") {
  // With 900 bytes and an empty line each, the first end after 2,000 bytes is that of the third.
  std::string text;
  for (const char letter : std::string("abcdefghijklm")) text += std::string(900, letter) + "\n\n";
  const SplitText split = split_by_passage(text, 2);
  CHECK(letters_of(split.train, 900) == "abcghim");
  CHECK(letters_of(split.held_out, 900) == "defjkl");
  // Without an empty line after it, the end of the text ends the last passage.
  text += std::string(3000, 'n');
  CHECK(split_by_passage(text, 2).train.ends_with("\n\nm" + text.substr(12 * 902 + 1)));
}

TEST_CASE("passages: every tenth is held out, none is in both parts and none is lost") {
  std::string text, letters = "abcdefghijklmnopqrstuvwxyzABCD";
  for (const char letter : letters) text += std::string(2100, letter) + "\n\n";
  const SplitText split = split_by_passage(text);
  CHECK(letters_of(split.train, 2100) == "abcdefghiklmnopqrsuvwxyzABC");
  CHECK(letters_of(split.held_out, 2100) == "jtD");
  REFUSES(split_by_passage(text, 31),
          "passages of the text, of 2,000 bytes or more each: "
          "wanted at least 31 (a longer text), got 30");
  REFUSES(split_by_passage("short"),
          "passages of the text, of 2,000 bytes or more each: "
          "wanted at least 10 (a longer text), got 1");
  REFUSES(split_by_passage("", 2),
          "passages of the text, of 2,000 bytes or more each: "
          "wanted at least 2 (a longer text), got 0");
  REFUSES(split_by_passage(text, 1),
          "every, how many passages there are for one held out: wanted at least 2, got 1");
}

TEST_CASE("by hand: without an empty line, a passage ends with a line, or else with a character") {
  // 20 lines of 100 bytes are 2,000 bytes, and the next line's end is the first after them.
  std::string lines;
  for (int line = 0; line < 900; ++line) lines += std::string(99, char('a' + line % 26)) + "\n";
  const auto split = [](const auto&... given) {
    try {
      return split_by_passage(given...);
    } catch (const std::exception&) {
      return SplitText();
    }
  };
  const SplitText of_lines = split(lines);
  CHECK(of_lines.held_out.starts_with(lines.substr(9 * 2100, 2100)));
  CHECK(of_lines.held_out.size() == 4 * 2100);
  CHECK(of_lines.train.size() == lines.size() - 4 * 2100);

  // One line: the 667th character of three bytes crosses byte 2,000.
  std::string line;
  for (int character = 0; character < 6670; ++character) line += "語";
  const SplitText of_line = split(line, 2);
  CHECK(of_line.held_out.size() == 5 * 2001);
  CHECK(of_line.train.size() == line.size() - 5 * 2001);
}

TEST_CASE("passages: a line of blanks is empty, and one that comes late ends nothing") {
  const auto first_of = [](const std::string& text) { return split_by_passage(text, 2).train; };
  const std::string sentences = std::string(999, 'a') + "\n" + std::string(1499, 'b') + "\n";
  for (const char* empty : {"", " ", "\t  "}) {
    const std::string first = sentences + empty + "\n";
    CHECK(first_of(first + std::string(2500, 'c')) == first);
  }
  const std::string more = std::string(1600, 'c') + "\n\n" + std::string(2000, 'd');
  CHECK(first_of(sentences + more) == sentences);
}

/// 0, 1, 2 …: a window's first token says where it begins.
static Ids counted(size_t size) {
  Ids ids(size);
  for (size_t i = 0; i < size; ++i) ids[i] = int(i);
  return ids;
}
/// Where windows number first, first + 1 … begin.
static Ids starts_of(Windows& windows, size_t T, std::uint64_t first, size_t count) {
  Batch batch = make_batch(count, T);
  windows.fill(batch, first);
  Ids starts;
  for (size_t b = 0; b < count; ++b) starts.push_back(batch.ids[b * T]);
  return starts;
}

TEST_CASE("windows: each once in an epoch, all of them within the text, targets one later") {
  for (const size_t size : {33, 40, 1000, 1001}) {
    CAPTURE(size);
    constexpr size_t T = 16;
    const Ids ids = counted(size);
    Windows windows(ids, T, 7);
    const size_t count = windows.in_epoch();
    CHECK(count == (size - 1) / T - 1);
    std::set<int> offsets;
    for (size_t epoch = 0; epoch < 40; ++epoch) {
      Batch batch = make_batch(count, T);
      windows.fill(batch, epoch * count);
      std::set<int> starts;
      bool in_order = true;
      for (size_t b = 0; b < count; ++b) {
        const int from = batch.ids[b * T];
        starts.insert(from);
        for (size_t t = b * T; t < (b + 1) * T; ++t)
          in_order = in_order && batch.ids[t] == from + int(t - b * T) &&
                     batch.targets[t] == batch.ids[t] + 1;
      }
      CHECK(in_order);
      CHECK(starts.size() == count);
      // They lie side by side.
      CHECK(*starts.rbegin() - *starts.begin() == int((count - 1) * T));
      CHECK(*starts.begin() <= int(T));
      CHECK(*starts.rbegin() + int(T) < int(size));
      offsets.insert(*starts.begin());
    }
    // 40 of 17 offsets: that 9 of them or more never come is less likely than 1 in 10,000.
    CHECK(offsets.size() > 8);
  }
}

TEST_CASE("windows: the order is another one in each epoch, and for each seed") {
  constexpr size_t T = 4, count = 300;
  const Ids ids = counted((count + 1) * T + 1);
  Windows windows(ids, T, 5), neighbour(ids, T, 6);
  CHECK(windows.in_epoch() == count);
  const auto order = [&](Windows& of, size_t epoch) {
    Ids starts = starts_of(of, T, epoch * count, count);
    for (int& start : starts) start /= int(T);
    return starts;
  };
  // Two orders without relation have one window in common on average, in one place or in places
  // that are shifted by one; more than ten is less likely than 1 in 10 million.
  const Ids first = order(windows, 0);
  for (const Ids& other : {order(windows, 1), order(neighbour, 0), order(neighbour, 1)})
    for (const size_t shift : {0, 1, 2, 298, 299}) {
      CAPTURE(shift);
      size_t same = 0;
      for (size_t i = 0; i < count; ++i) same += first[i] == other[(i + shift) % count];
      CHECK(same <= 10);
    }
  CHECK(order(windows, 0) == first);
}

TEST_CASE("windows: those before are not needed to find the ones from any number on") {
  constexpr size_t T = 5;
  const Ids ids = counted(64);
  Windows in_turn(ids, T, 3), jumping(ids, T, 3);
  const size_t count = in_turn.in_epoch();
  const Ids all = starts_of(in_turn, T, 0, 4 * count);
  for (const size_t first :
       {size_t(0), 3 * count + 2, count - 1, count, 2 * count - 1, size_t(1)}) {
    CAPTURE(first);
    const Ids want(all.begin() + long(first), all.begin() + long(first) + 3);
    CHECK(starts_of(jumping, T, first, 3) == want);
    Windows anew(ids, T, 3);
    CHECK(starts_of(anew, T, first, 3) == want);
  }
  // Far on, where a run would be after a year.
  CHECK(starts_of(jumping, T, std::uint64_t(1) << 50, 3) ==
        starts_of(in_turn, T, std::uint64_t(1) << 50, 3));
}

TEST_CASE("windows: the order is that of the formula, written in Python") {
  const Ids want = load_npy_ints(T2T_FIXTURES "/training_windows.npy");
  struct Text {
    size_t size, T;
    std::uint64_t seed;
  };
  size_t next = 0;
  for (const Text& text : {Text{400, 12, 9}, {1000, 16, 7}, {1000, 16, 8}, {3, 1, 1}}) {
    CAPTURE(text.seed);
    const Ids ids = counted(text.size);
    Windows windows(ids, text.T, text.seed);
    CHECK(starts_of(windows, text.T, 0, 60) ==
          Ids(want.begin() + long(next), want.begin() + long(next) + 60));
    next += 60;
  }
  CHECK(next == want.size());
}

TEST_CASE("windows refuse short texts and batches that do not fit them") {
  const Ids ids = counted(33);
  REFUSES(Windows(std::span(ids).first(32), 16, 1),
          "ids, the text's tokens: wanted at least 2·T + 1 = 33, got 32");
  REFUSES(Windows(ids, 0, 1), "T, the tokens of a window: wanted at least 1, got 0");
  Windows windows(ids, 16, 1);
  CHECK(windows.in_epoch() == 1);
  Batch batch = make_batch(2, 15);
  REFUSES(windows.fill(batch, 0), "T of the batch: wanted that of the windows, got 15");
  batch = make_batch(2, 16), batch.targets.pop_back();
  REFUSES(windows.fill(batch, 0), "targets of the batch: wanted room for B·T, got 31");
  REFUSES(fill_in_order(batch, ids, 0), "targets of the batch: wanted room for B·T, got 31");
  batch.ids.clear();
  REFUSES(windows.fill(batch, 0), "ids of the batch: wanted room for B·T, got 0");
}

TEST_CASE("by hand: seven tokens in order, in batches of two texts of two") {
  const Ids ids = {5, 6, 7, 8, 9, 10, 11};
  Batch batch = make_batch(2, 2);
  CHECK(fill_in_order(batch, ids, 0));
  CHECK(batch.ids == Ids{5, 6, 7, 8});
  CHECK(batch.targets == Ids{6, 7, 8, 9});
  CHECK(fill_in_order(batch, ids, 4));
  CHECK(batch.ids == Ids{9, 10, 0, 0});
  CHECK(batch.targets == Ids{10, 11, not_learned, not_learned});
  CHECK_FALSE(fill_in_order(batch, ids, 6));  // the last token has none after it
  CHECK_FALSE(fill_in_order(batch, ids, 8));
  CHECK_FALSE(fill_in_order(batch, {}, 0));
}

}  // namespace t2t::windows_test
