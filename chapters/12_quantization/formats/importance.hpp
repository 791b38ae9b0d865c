// How much each column of a matrix matters: the mean square of its inputs.
//
// An output of a matrix is y = Σ_c w_c · x_c. When the weights are off by e_c, y is off by
// Σ_c e_c · x_c, and if the mean of x_c · x_d is 0 for any two columns, the mean square of that is
//
//   Σ_c e_c² · mean(x_c²)
//
// Therefore scale_search.hpp weights the squared error of a column by mean(x_c²), which is found by
// running the model on a text. A few channels of a model are far larger than the others, and their
// columns are then rounded with more care.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "10_pretrained/check/perplexity.hpp"
#include "10_pretrained/model/load_model.hpp"

namespace t2t {

/// A value for each column of each matrix used, by its name in the file.
using Importance = std::map<std::string, std::vector<float>, std::less<>>;

/// Runs the file's model on a text, in windows of so many tokens, with floats as weights. A column
/// whose inputs are nearly always 0 still counts a thousandth of the mean of all columns, since
/// another text may use it. after_window, if given, is called after each window. Throws as
/// read_model and perplexity_of do.
Importance importance_of(const GgufFile& file, std::span<const int> ids,  // [T]
                         std::size_t window,
                         const std::function<void(const Perplexity& so_far)>& after_window = {});

}  // namespace t2t
