// What the shows say of many values: their mean, and the value below which a share of them lies.
#pragma once

#include <vector>

namespace t2t {

double mean(const std::vector<double>& values);

/// The share is in [0, 1): 0.5 gives the median, of an even number of values the upper one of the
/// middle two. There must be at least one value.
double quantile(std::vector<double> values, double share);

}  // namespace t2t
