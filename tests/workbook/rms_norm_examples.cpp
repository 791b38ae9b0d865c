// Cases as a reader may write them for ./learn example 02 rms_norm: docs/workbook.md shows what it
// says of them.
#include <doctest/doctest.h>

#include "02_normalization/rms_norm.hpp"
#include "support/all_close.hpp"

using namespace t2t;

TEST_CASE("by hand: (3, 4) has a mean square of 12.5") {
  const Tensor<2> x = {{3, 4}}, want = {{0.84853f, 1.13137f}};
  const Tensor<1> gain = {1, 1};
  Tensor<2> y = rms_norm(x, gain, 0);
  CHECK(all_close(y, want, 1e-5));
}

TEST_CASE("a token beside another comes out as it does alone") {
  const Tensor<2> both = {{3, 4}, {10, 20}}, alone = {{3, 4}};
  const Tensor<1> gain = {1, 1};
  CHECK(rms_norm(both, gain)(0, 1) == rms_norm(alone, gain)(0, 1));
}
