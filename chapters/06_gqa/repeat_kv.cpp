#include "06_gqa/repeat_kv.hpp"

#include <algorithm>

#include "06_gqa/grouped_query_attention.hpp"
#include "shapes.hpp"

namespace t2t {

Tensor<2> repeat_kv(const Tensor<2>& x, std::size_t H, std::size_t G) {
  expect_groups(H, G);
  const std::size_t S = x.shape(0), D = x.shape(1) / G;
  expect_shape("x", x, {S, G * D});
  Tensor<2> repeated = empty(S, H * D);  // [S, H·D]
  for (std::size_t s = 0; s < S; ++s)
    for (std::size_t g = 0; g < G; ++g)
      for (std::size_t copy = 0; copy < H / G; ++copy)
        std::ranges::copy(ConstMatrix(x).head(g, D).row(s),
                          Matrix(repeated).head(g * (H / G) + copy, D).row(s).begin());
  return repeated;
}

}  // namespace t2t
