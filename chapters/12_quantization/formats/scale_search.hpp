// A search for the scale, and the minimum, with which a block errs least.
//
// The scale that follows from a block's range (quantize.hpp) has room for its largest weight. A
// smaller one clips that weight and is finer for all others; one a little different may match more
// weights exactly. Some scales around it are therefore tried. Each gives integers q, and for
// these q the best scale is known: the error
//
//   E = Σ_i w_i · (x_i − scale·q_i − minimum)²
//
// is least where its derivatives are 0, two equations in two unknowns (least squares). With that
// scale some q may change, so both steps are done twice. The w_i are 1, or the importance of the
// columns (importance.hpp). A block that the search does not improve stays as quantize_rows rounds
// it.
#pragma once

#include <cstdint>
#include <vector>

#include "10_pretrained/file/dequantize.hpp"
#include "12_quantization/formats/k_quantize.hpp"

namespace t2t {

/// The scale and minimum of least E among range_fit and 16 tries around it. The scale is also tried
/// with the other sign, if the grid has no minimum.
Fit search_fit(ConstRow x, ConstRow weights, const Grid& grid);

/// Σ weights · (x − block's values)², of one stored block.
double weighted_error(TensorType type, const std::uint8_t* block, ConstRow x, ConstRow weights);

/// As quantize_rows, with a search for each block. importance is a weight of at least 0 for each
/// column; without one, all weights are 1. Throws also for an importance of another length, and for
/// one with elements that are negative or not finite.
std::vector<std::uint8_t> search_rows(TensorType type, ConstMatrix x,  // [T, C]
                                      ConstRow importance = {});       // [C] or none

}  // namespace t2t
