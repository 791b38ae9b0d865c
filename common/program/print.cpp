#include "program/print.hpp"

#include <fmt/core.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>

#include "shapes.hpp"
#include "utf8_start.hpp"

namespace t2t {

std::size_t terminal_width() {
  if (const char* columns = std::getenv("COLUMNS"); columns && std::atoi(columns) > 20)
    return std::size_t(std::atoi(columns));
  winsize size{};
  if (isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20)
    return size.ws_col;
  return 80;
}

bool use_colour() {
  const char* no_color = std::getenv("NO_COLOR");  // https://no-color.org
  return isatty(STDOUT_FILENO) && !(no_color && *no_color);
}

std::size_t display_width(std::string_view text) { return count_characters(text); }

static std::string padded(std::string_view text, std::size_t width, bool right) {
  const std::size_t used = display_width(text);
  const std::string space(width > used ? width - used : 0, ' ');
  return right ? space + std::string(text) : std::string(text) + space;
}

void print_section(std::string_view given) {
  const std::string title = printable_lines(given);
  if (use_colour())
    fmt::print("\n\033[1m{}\033[0m\n\n", title);
  else
    fmt::print("\n{}\n\n", title);
}

void print_paragraph(std::string_view given) {
  const std::string text = printable_lines(given);
  const std::size_t width = std::min<std::size_t>(terminal_width(), 100) - 2;
  std::string line;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t space = std::min(text.find(' ', at), text.size());
    const std::string word = text.substr(at, space - at);
    if (!line.empty() && display_width(line) + 1 + display_width(word) > width) {
      fmt::print("  {}\n", line);
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
    at = space + 1;
  }
  if (!line.empty()) fmt::print("  {}\n", line);
}

Table::Table(std::vector<std::string> header) {
  for (std::string& name : header) {
    right_.push_back(name.starts_with('>'));
    if (right_.back()) name.erase(0, 1);
  }
  rows_.push_back(std::move(header));
}

void Table::add(std::vector<std::string> cells) {
  cells.resize(rows_.front().size());
  for (std::string& cell : cells) cell = printable_lines(cell);
  rows_.push_back(std::move(cells));
}

void Table::print() const {
  std::vector<std::size_t> width(right_.size(), 0);
  for (const auto& cells : rows_)
    for (std::size_t c = 0; c < cells.size(); ++c)
      width[c] = std::max(width[c], display_width(cells[c]));

  for (const auto& cells : rows_) {
    std::string line = " ";
    for (std::size_t c = 0; c < cells.size(); ++c)
      line += fmt::format(" {} ", padded(cells[c], width[c], right_[c]));
    line.erase(line.find_last_not_of(' ') + 1);
    const bool dim = &cells == &rows_.front() && use_colour();
    fmt::print("{}{}{}\n", dim ? "\033[2m" : "", line, dim ? "\033[0m" : "");
  }
}

void print_shapes(const std::vector<ShapeRow>& rows) {
  Table table({"tensor", "shape", "what it is"});
  for (const ShapeRow& row : rows) table.add({row.name, shape_text(row.shape), row.what});
  table.print();
}

namespace {

/// From a number to its place on the scale, [0, 1], and from there to two characters.
struct Shades {
  float low, high;

  Shades(ConstMatrix x, bool diverging) : low(INFINITY), high(-INFINITY) {
    for (std::size_t t = 0; t < x.rows; ++t)
      for (const float value : x.row(t))
        if (std::isfinite(value)) low = std::min(low, value), high = std::max(high, value);
    if (!(low <= high)) low = high = 0;
    if (diverging) high = std::max(std::abs(low), std::abs(high)), low = -high;
  }
  double place(float value) const { return high > low ? (value - low) / (high - low) : 0.5; }

  std::string cell(float value, bool diverging) const {
    if (std::isnan(value)) return "??";
    if (std::isinf(value)) return value < 0 ? " ." : "++";
    const double p = place(value);
    if (use_colour()) return fmt::format("\033[48;5;{}m  \033[0m", colour(p, diverging));
    static constexpr const char* shades[] = {"  ", "░░", "▒▒", "▓▓", "██"};
    static constexpr const char* signs[] = {"==", "--", "  ", "++", "##"};
    const int step = std::min(4, int(p * 5));
    return diverging ? signs[step] : shades[step];
  }
  /// Of the 256 of a terminal: greys, or blue through grey to red.
  static int colour(double p, bool diverging) {
    static constexpr int two_sided[] = {21, 27, 33, 39, 250, 215, 209, 203, 196};
    if (diverging) return two_sided[std::min(8, int(p * 9))];
    return 255 - std::min(23, int(p * 24));
  }
};

std::string label(const std::vector<std::string>& labels, std::size_t i) {
  return i < labels.size() ? labels[i] : "";
}

}  // namespace

std::string heat_map_text(ConstMatrix x, const HeatMap& options) {
  std::string text;
  const Shades shades(x, options.diverging);
  std::size_t margin = 0;
  for (const std::string& text : options.row_labels) margin = std::max(margin, display_width(text));
  const std::size_t cols = std::min(x.cols, (terminal_width() - margin - 4) / 2);
  const std::size_t rows = std::min<std::size_t>(x.rows, 32);

  if (!options.col_labels.empty()) {
    std::string line(margin + 3, ' ');
    for (std::size_t c = 0; c < cols; ++c) line += padded(label(options.col_labels, c), 2, false);
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  for (std::size_t t = 0; t < rows; ++t) {
    std::string line = "  " + padded(label(options.row_labels, t), margin, true) + " ";
    for (std::size_t c = 0; c < cols; ++c) line += shades.cell(x.row(t)[c], options.diverging);
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }

  const auto key = [&](float value) { return shades.cell(value, options.diverging); };
  const float low = shades.low, high = shades.high;
  text += fmt::format("  {} {} {:.3g}", std::string(margin, ' '), key(low), low);
  for (const float quarter : {0.25f, 0.5f, 0.75f, 1.0f}) {
    if (high == low) break;  // one value everywhere: the key is done
    const float value = low + quarter * (high - low);
    text += fmt::format("  {} {:.3g}", key(value), value);
  }
  text += "\n";
  if (rows < x.rows || cols < x.cols)
    text += fmt::format("  {} the first {} of {} rows and {} of {} columns\n",
                        std::string(margin, ' '), rows, x.rows, cols, x.cols);
  return text;
}

void print_heat_map(ConstMatrix x, const HeatMap& options) {
  fmt::print("{}", heat_map_text(x, options));
}

std::string sparkline(ConstRow values) {
  static constexpr const char* heights[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  if (values.empty()) return "";
  const auto [low, high] = std::ranges::minmax(values);
  std::string line;
  for (const float value : values)
    line += heights[high > low ? std::min(7, int((value - low) / (high - low) * 8)) : 0];
  return line;
}

std::string bar(double share, std::size_t columns) {
  static constexpr const char* parts[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  if (!(share > 0)) share = 0;
  const auto eighths = std::size_t(std::lround(std::min(share, 1.0) * double(columns) * 8));
  std::string text;
  for (std::size_t i = 0; i < eighths / 8; ++i) text += "█";
  text += parts[eighths % 8];
  return padded(text, columns, false);
}

std::string visible(std::string_view text) {
  std::string shown;
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Start start = utf8_start(text.substr(at));
    const std::string_view character = text.substr(at, start.length);
    if (character == "\n")
      shown += "⏎";
    else if (character == " ")
      shown += "␣";
    else if (start.kind != Utf8Start::whole)
      for (const char byte : character) shown += fmt::format("<{:02x}>", std::uint8_t(byte));
    else if (is_control(character))
      shown += fmt::format("<{:02x}>", std::uint8_t(character.back()));
    else
      shown += character;
    at += start.length;
  }
  return shown;
}

std::string with_commas(std::size_t n) {
  std::string digits = std::to_string(n);
  for (int at = int(digits.size()) - 3; at > 0; at -= 3) digits.insert(std::size_t(at), 1, ',');
  return digits;
}

std::string duration_text(double seconds) {
  if (seconds < 1e-3) return fmt::format("{:.3g} us", seconds * 1e6);
  if (seconds < 1) return fmt::format("{:.3g} ms", seconds * 1e3);
  return fmt::format("{:.3g} s", seconds);
}

}  // namespace t2t
