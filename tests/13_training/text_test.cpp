// What must be true of what a run reads and draws: its text, its tokens and its curve.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "10_pretrained/model/tokenizer.hpp"
#include "13_training/cases.hpp"
#include "13_training/text/training_text.hpp"
#include "13_training/trainer/loss_curve.hpp"
#include "13_training/trainer/run_folder.hpp"
#include "files/files.hpp"
#include "support/lists.hpp"
#include "support/refuses.hpp"
#include "support/tried.hpp"

namespace t2t::text_test {

using std::size_t;
using Bad = std::runtime_error;

static constexpr double infinity = std::numeric_limits<double>::infinity();

TEST_CASE("ids come back from their file; other files are refused") {
  const Folder folder;
  const std::filesystem::path path = folder.path / "train.ids";
  const auto read = [&](size_t V) {
    const MappedIds mapped(path, V);
    return Ids(mapped.ids().begin(), mapped.ids().end());
  };
  for (const Ids& ids : {Ids{}, Ids{0}, Ids{256, 0, 5}, Ids(300, 97)}) {
    save_ids(path, ids);
    CHECK(read(257) == ids);
    CHECK(std::filesystem::file_size(path) == 4 * ids.size());
  }
  const std::string begin = path.string() + ": ";
  for (const size_t size : {1, 2, 3, 5, 4003}) {
    write_file(path, std::string(size, '\0'));
    REFUSES_AS(read(257), begin + fmt::format("wanted integers of 4 bytes, got {} bytes", size),
               Bad);
  }
  save_ids(path, Ids{5, 6, 7});
  CHECK(read(8) == Ids{5, 6, 7});
  REFUSES_AS(read(7), begin + "token 2 is 7, outside [0, 7), the vocabulary", Bad);
  save_ids(path, Ids{5, -1, 7});
  REFUSES_AS(read(8), begin + "token 1 is -1, outside [0, 8), the vocabulary", Bad);
  save_ids(path, Ids{std::numeric_limits<int>::min()});
  REFUSES_AS(read(8), begin + "token 0 is -2147483648, outside [0, 8), the vocabulary", Bad);
  std::filesystem::remove(path);
  REFUSES_AS(read(8), begin + "No such file or directory", Bad);
}

static std::string utf8(std::uint32_t c) {
  const auto rest = [&](int shift) { return char(0x80 | ((c >> shift) & 0x3f)); };
  if (c < 0x80) return {char(c)};
  if (c < 0x800) return {char(0xc0 | (c >> 6)), rest(0)};
  if (c < 0x10000) return {char(0xe0 | (c >> 12)), rest(6), rest(0)};
  return {char(0xf0 | (c >> 18)), rest(12), rest(6), rest(0)};
}

TEST_CASE("a token for each byte: any text becomes its bytes, and its bytes become the text") {
  const Bpe bpe(byte_tokenizer());
  std::vector<std::string> texts = {"", "The end.\n", " \t\r\n  \n\n x", "<|endoftext|>",
                                    "1234'll"};
  std::string all;
  for (std::uint32_t c = 0; c < 0x80; ++c) all += utf8(c);
  for (std::uint32_t c = 0x80; c < 0x110000; c += 83)
    if (c < 0xd800 || c >= 0xe000) all += utf8(c);
  texts.push_back(all);
  for (const std::string& text : texts) {
    Ids want;
    for (const char c : text) want.push_back(std::uint8_t(c));
    const Ids ids = bpe.encode(text);
    CHECK((ids == want));
    CHECK((bpe.decode(ids) == text));
  }
  for (int id = 0; id < 256; ++id) CHECK(bpe.bytes(id) == std::string(1, char(id)));
  CHECK(bpe.size() == 257);
  CHECK(bpe.encode("a<|endoftext|>", SpecialTokens::as_tokens) == Ids{97, 256});
}

static LossCurve curve_of(const std::vector<double>& losses) {
  LossCurve curve;
  for (const double loss : losses) curve.push_back({{curve.size() + 1, loss, 1, 1e-3f, 0.01}});
  return curve;
}

TEST_CASE("by hand: the curve's table has a line for each step") {
  const std::string header = "step,loss,held_out,gradient_norm,rate,update_ratio\n";
  CHECK(csv_of({}) == header);
  const LossCurve curve = {{{1, 5.545177, 12.345678, 2e-5f, 0.00123456}},
                           {{2, 4.5, 100, 1e-3f, 0.5}, 5.25},
                           {{3, 0.0000014, 1e-7, 0, 1e-9}, infinity}};
  CHECK(csv_of(curve) == header +
                             "1,5.545177,,12.346,2e-05,0.001235\n"
                             "2,4.500000,5.250000,100,0.001,0.5\n"
                             "3,0.000001,,1e-07,0,1e-09\n");
}

static size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++found;
  return found;
}
/// Every element is closed, in the order in which they were opened.
static bool is_nested(const std::string& svg) {
  std::vector<std::string> open;
  for (size_t at = svg.find('<'); at != svg.npos; at = svg.find('<', at + 1)) {
    const size_t end = svg.find('>', at);
    if (end == svg.npos) return false;
    const std::string name = svg.substr(at + 1, svg.find_first_of(" >", at) - at - 1);
    if (svg[end - 1] == '/') continue;
    if (name[0] != '/') {
      open.push_back(name);
    } else {
      if (open.empty() || "/" + open.back() != name) return false;
      open.pop_back();
    }
  }
  return open.empty();
}

TEST_CASE("by hand: the drawing for the page has two lines between integers") {
  CHECK(svg_of({}).empty());
  LossCurve curve = curve_of({5.5, 5.25, 5});
  curve[1].held_out = 5.75;
  // From 5 at y = 330 to 6 at y = 30; three steps at a third, two thirds and all of 600 after 40.
  const std::string svg = svg_of(curve);
  CHECK(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\" "));
  CHECK(svg.ends_with("</svg>\n"));
  CHECK(is_nested(svg));
  CHECK(count(svg, "<path class=\"first\"") == 1);
  CHECK(count(svg, "<path class=\"second\"") == 1);
  CHECK(count(svg, " d=\"M240 180 440 255 640 330\"") == 1);
  CHECK(count(svg, " d=\"M440 105\"") == 1);
  CHECK(count(svg, " y=\"334.5\" text-anchor=\"end\" font-size=\"13\">5</text>") == 1);
  CHECK(count(svg, " y=\"34.5\" text-anchor=\"end\" font-size=\"13\">6</text>") == 1);
  CHECK(count(svg, "step 3<") == 1);
}

TEST_CASE("drawings of one point, of equal losses and of large ones have numbers in them") {
  for (const std::vector<double>& losses :
       {std::vector{5.0}, std::vector{5.5}, std::vector(300, 3.0), std::vector{0.0, 9e8},
        std::vector{-1e-9, 1e-9}, std::vector{2.5, 14.5}}) {
    CAPTURE(losses.back());
    const LossCurve curve = curve_of(losses);
    const std::string svg = svg_of(curve), drawing = drawing_of(curve, 60, 8);
    CHECK(is_nested(svg));
    for (const char* none : {"nan", "inf"}) {
      CHECK(count(svg, none) == 0);
      CHECK(count(drawing, none) == 0);
    }
    CHECK(count(svg, "</text>") <= 11 + 5);
    const size_t from = svg.find("d=\"M", svg.find("<path class=\"first\""));
    const std::string places = svg.substr(from, svg.find("\"/>", from) - from);
    CHECK(count(places, " ") == 2 * losses.size() - 1);
  }
}

/// Which row of the drawing, from 0 at the top, has the mark of each column. 99: not one mark.
static std::vector<size_t> marks(const std::string& drawing, size_t rows) {
  std::vector<size_t> at;
  std::vector<int> found;
  size_t from = 0;
  for (size_t r = 0; r < rows; ++r) {
    const std::string bar = "│", mark = "•";
    size_t i = drawing.find(bar, from) + bar.size();
    for (size_t column = 0; i < drawing.size() && drawing[i] != '\n'; ++column) {
      const bool marked = drawing.compare(i, mark.size(), mark) == 0;
      i += marked ? mark.size() : 1;
      if (at.size() <= column) at.push_back(99), found.push_back(0);
      if (marked) at[column] = ++found[column] == 1 ? r : 99;
    }
    from = i;
  }
  return at;
}

TEST_CASE("the drawing in the terminal: so many rows, high losses above, one mark a column") {
  using Rows = std::vector<size_t>;
  CHECK(drawing_of(curve_of({3, 2, 1, 1}), 60, 3) ==
        "   3.00 │•   \n   2.00 │ •  \n   1.00 │  ••\n        step 1 to 4\n");
  // Two columns of two steps each, with means of 3 and 1.
  CHECK(drawing_of(curve_of({4, 2, 0, 2}), 2, 2) ==
        "   3.00 │• \n   1.00 │ •\n        step 1 to 4\n");
  CHECK((marks(drawing_of(curve_of({5}), 60, 4), 4) == Rows{3}));
  CHECK((marks(drawing_of(curve_of({5, 5, 5}), 60, 4), 4) == Rows{3, 3, 3}));

  std::vector<double> losses;
  for (int i = 0; i < 100; ++i) losses.push_back(6 - 0.05 * i + 0.3 * std::sin(i));
  for (const size_t columns : {1, 7, 60, 99, 100, 101})
    for (const size_t rows : {2, 3, 10}) {
      CAPTURE(columns);
      CAPTURE(rows);
      const std::string drawing = drawing_of(curve_of(losses), columns, rows);
      CHECK(count(drawing, "\n") == rows + 1);
      const Rows at = marks(drawing, rows);
      CHECK(at.size() == std::min<size_t>(columns, 100));
      CHECK(std::ranges::all_of(at, [&](size_t row) { return row < rows; }));
      if (columns > 1) CHECK(at.front() < at.back());
    }
  REFUSES(drawing_of({}, 60, 3), "curve: wanted at least 1 point, got 0");
  REFUSES(drawing_of(curve_of({5}), 0, 3), "columns: wanted at least 1, got 0");
  REFUSES(drawing_of(curve_of({5}), 60, 1), "rows: wanted at least 2, got 1");
}

TEST_CASE("a folder's text: prose of pages with their empty lines, other texts whole, by name") {
  const Folder folder;
  write_file(
      folder.path / "b.md",
      "# Title\n\nOne.\nStill one.\n\n\n## Part\n\n```\nlisting\n```\n\nTwo.\n\n| a | b |\n");
  write_file(folder.path / "a.txt", "# whole\n\n\n| é |");
  write_file(folder.path / "c.txt", "last\n");
  write_file(folder.path / "d.markdown", "no");
  write_file(folder.path / "e", "no");
  write_file(folder.path / "f.md~", "no");
  CHECK(text_of_folder(folder.path) ==
        "# whole\n\n\n| é |\n\n"
        "\nOne.\nStill one.\n\nTwo.\n\n\n"
        "last\n\n");
  CHECK(text_of_file(folder.path / "a.txt") == "# whole\n\n\n| é |");
  CHECK(text_of_file(folder.path / "b.md") == "\nOne.\nStill one.\n\nTwo.\n\n");
  CHECK(text_of_file(folder.path / "e") == "no");
}

TEST_CASE("files are taken in the order of their names, whatever the folder's is") {
  const Folder folder;
  const std::string names = "hckbaldgifje";
  for (const char name : names) write_file(folder.path / fmt::format("{}.txt", name), {&name, 1});
  CHECK(text_of_folder(folder.path) ==
        "a\n\nb\n\nc\n\nd\n\ne\n\nf\n\ng\n\nh\n\ni\n\nj\n\nk\n\nl\n\n");
}

TEST_CASE("a text is the same, whatever ends its lines") {
  const Folder folder;
  for (const std::string end : {"\n", "\r\n", "\r"}) {
    CAPTURE(end.size());
    write_file(folder.path / "a.txt", "one" + end + end + "two" + end);
    write_file(folder.path / "b.md", "# Title" + end + end + "One." + end + end + "Two." + end);
    CHECK(text_of_file(folder.path / "a.txt") == "one\n\ntwo\n");
    CHECK(text_of_file(folder.path / "b.md") == "\nOne.\n\nTwo.\n");
  }
}

TEST_CASE("texts that are missing, empty or not UTF-8 are refused by name") {
  const Folder folder;
  const std::string name = folder.path.string(), nowhere = name + "/nowhere";
  REFUSES_AS(text_of_folder(folder.path), name + ": wanted files that end in .md or .txt, got none",
             Bad);
  REFUSES_AS(text_of_folder(nowhere), nowhere + ": No such file or directory", Bad);
  REFUSES_AS(text_of_file(nowhere), nowhere + ": can't be read: No such file or directory", Bad);
  REFUSES_AS(text_of_file(folder.path), name + ": is a folder, wanted a file", Bad);

  const std::filesystem::path file = folder.path / "a.txt", page = folder.path / "b.md";
  write_file(file, "");
  REFUSES_AS(text_of_file(file), file.string() + ": the text is empty, wanted at least one byte",
             Bad);
  write_file(page, "# Title\n");
  REFUSES_AS(text_of_file(page), page.string() + ": the text is empty, wanted at least one byte",
             Bad);
  REFUSES_AS(text_of_folder(file), file.string() + ": Not a directory", Bad);
  for (const std::filesystem::path& bad : {file, page}) {
    write_file(bad, "ab\xff");
    const std::string message =
        bad.string() + ": byte 0xff at offset 2 is not UTF-8; save the text as UTF-8";
    REFUSES_AS(text_of_file(bad), message, Bad);
    REFUSES_AS(text_of_folder(folder.path), message, Bad);
    write_file(bad, "fine");
  }
}

}  // namespace t2t::text_test
