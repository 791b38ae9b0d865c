// What the programs show: headings, tables, heat maps, bars and the roofline line.
//
// Colour is used on a terminal unless NO_COLOR is set; piped output is plain text. Lines keep to
// the terminal's width (80 columns when piped, or what COLUMNS says).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tensor.hpp"

namespace t2t {

std::size_t terminal_width();
bool use_colour();

/// Columns that a terminal gives this UTF-8 text, most scripts' characters being one wide.
std::size_t display_width(std::string_view text);

/// "\n  What the gate does\n\n", bold on a terminal. A page quotes a program's output section by
/// section, by these titles.
void print_section(std::string_view title);

/// Text broken into lines between words, each indented by two.
void print_paragraph(std::string_view text);

/// Columns as wide as they need; a column whose header begins with '>' keeps to the right.
class Table {
 public:
  explicit Table(std::vector<std::string> header);
  void add(std::vector<std::string> cells);
  void print() const;

 private:
  std::vector<std::vector<std::string>> rows_;  // the header first
  std::vector<bool> right_;                     // for each column
};

/// A shape table: what flowed through, in order. Row: name, shape, what it is.
struct ShapeRow {
  std::string name;
  std::vector<std::size_t> shape;
  std::string what;
};
void print_shapes(const std::vector<ShapeRow>& rows);

struct HeatMap {
  std::vector<std::string> row_labels = {}, col_labels = {};  // or shorter than the matrix
  bool diverging = false;  // zero is the middle of the scale: for numbers of either sign
};
/// A matrix as shades: two characters a number, light to dark for small to large (and -infinity as
/// a dot). What doesn't fit the width is left out, and a line says so. Ends with the scale.
void print_heat_map(ConstMatrix x, const HeatMap& options = {});
std::string heat_map_text(ConstMatrix x, const HeatMap& options = {});

/// One character a value, low to high, for a curve in one line.
std::string sparkline(ConstRow values);

/// "████▌     " of that many columns; share in [0, 1].
std::string bar(double share, std::size_t columns);

/// Text for terminals: spaces, control characters and parts of characters made visible, the rest as
/// it is.
std::string visible(std::string_view text);

/// "131,072,000"
std::string with_commas(std::size_t n);

/// "412 us", "1.3 ms", "2.1 s"
std::string duration_text(double seconds);

}  // namespace t2t
