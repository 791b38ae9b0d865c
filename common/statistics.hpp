// Statistics of many values: their root mean square, their mean, and the value below which a share
// of them lies.
#pragma once

#include <vector>

#include "tensor.hpp"

namespace t2t {

/// The root of the mean square, summed in double. x must have at least one element.
double root_mean_square(ConstRow x);
double root_mean_square(const Tensor<2>& x);

/// There must be at least one value.
double mean(const std::vector<double>& values);

/// The share is in [0, 1): 0.5 gives the median, of an even number of values the upper one of the
/// middle two. There must be at least one value, and none may be NaN.
double quantile(std::vector<double> values, double share);

}  // namespace t2t
