// A matrix of shares as cells that are darker, on a dark page lighter, the larger the share is.
#pragma once

#include <string>
#include <vector>

#include "figure/figure.hpp"
#include "tensor.hpp"

namespace t2t {

struct HeatCells {
  Place corner;                             // of the first cell, top left
  double side = 34;                         // of a cell
  std::vector<std::string> row_words = {};  // at the left of each row
  std::vector<std::string> col_words = {};  // above each column
};

/// Each cell also says its share in percent, so that no reader depends on the shades. A cell that
/// does not exist, marked by -infinity, stays empty. Throws std::invalid_argument for a share
/// outside of [0, 1], NaN included.
void draw_heat_cells(Figure& figure, ConstMatrix shares, const HeatCells& cells);

}  // namespace t2t
