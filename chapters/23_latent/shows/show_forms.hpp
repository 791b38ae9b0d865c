// The two forms of latent attention side by side, on a case by hand and at odd sizes.
#pragma once

#include <cstddef>

namespace t2t {

/// One head, two positions: keys, values, scores, weights and the output in both forms.
void show_by_hand();

/// The largest difference of the two forms at several sizes, as a share of the largest output.
void show_equal(std::size_t seed);

}  // namespace t2t
