// What programs print: headings, tables, heat maps and bars.
//
// Colour is used on a terminal unless NO_COLOR is set; piped output is plain text. Lines keep to
// the terminal's width (80 columns when piped, or what COLUMNS says). Text may contain names and
// words from other people's files: in titles, paragraphs and tables, control characters become
// visible, so that no escape sequence reaches the terminal.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tensor.hpp"

namespace t2t {

std::size_t terminal_width();
bool use_colour();

/// How many columns this UTF-8 text occupies on a terminal, counting one for each character.
std::size_t display_width(std::string_view text);

/// Prints a title between blank lines, bold on a terminal. Pages quote the sections of a program's
/// output by these titles.
void print_section(std::string_view title);

/// Prints text wrapped at word boundaries, each line indented by two spaces.
void print_paragraph(std::string_view text);

/// A table whose columns are as wide as needed. A column whose header begins with '>' is aligned
/// right.
class Table {
 public:
  explicit Table(std::vector<std::string> header);
  void add(std::vector<std::string> cells);
  void print() const;

 private:
  std::vector<std::vector<std::string>> rows_;  // the header first
  std::vector<bool> right_;                     // for each column
};

/// A table of tensors and their shapes, in order.
struct ShapeRow {
  std::string name;
  std::vector<std::size_t> shape;
  std::string what;
};
void print_shapes(const std::vector<ShapeRow>& rows);

struct HeatMap {
  std::vector<std::string> row_labels = {}, col_labels = {};  // may be shorter than the matrix
  bool diverging = false;                                     // zero is the middle of the scale
};
/// A matrix as shades, two characters for each element: light for small, dark for large, and a dot
/// for -infinity. The scale follows. What does not fit the width is left out, and a line says so.
void print_heat_map(ConstMatrix x, const HeatMap& options = {});
std::string heat_map_text(ConstMatrix x, const HeatMap& options = {});

/// A curve in one line: one character for each value, from low to high.
std::string sparkline(ConstRow values);

/// A bar "████▌     " of that many columns, filled to share, which is in [0, 1].
std::string bar(double share, std::size_t columns);

/// Text for a terminal, with spaces, control characters and incomplete characters made visible.
std::string visible(std::string_view text);

/// "131,072,000"
std::string with_commas(std::size_t n);

/// "412 us", "1.3 ms", "2.1 s"
std::string duration_text(double seconds);

}  // namespace t2t
