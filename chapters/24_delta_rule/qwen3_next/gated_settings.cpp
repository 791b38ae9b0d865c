#include "24_delta_rule/qwen3_next/gated_settings.hpp"

#include <fmt/core.h>

#include <cmath>

#include "06_gqa/grouped_query_attention.hpp"
#include "shapes.hpp"

namespace t2t {

void expect_gated(const GatedAttentionSettings& settings) {
  const auto& [C, H, G, D, R, eps] = settings;
  expect(C >= 1, "C, the width of the layer", "at least 1", C);
  expect_groups(H, G);
  expect(D >= 1, "D, the width of a head", "at least 1", D);
  expect(R >= 2 && R <= D && R % 2 == 0, "R, the channels that RoPE rotates",
         fmt::format("an even number from 2 to D = {}", D), R);
  expect(eps > 0 && std::isfinite(eps), "eps", "a finite number above 0", eps);
}

void expect_gated_call(const Tensor<2>& x, const GatedAttentionWeights& weights,
                       const GatedAttentionSettings& settings) {
  expect_gated(settings);
  const auto& [C, H, G, D, R, eps] = settings;
  expect_shape("x", x, {x.shape(0), C});
  expect_shape("w_q", weights.w_q, {2 * H * D, C});
  expect_shape("w_k", weights.w_k, {G * D, C});
  expect_shape("w_v", weights.w_v, {G * D, C});
  expect_shape("q_gain", weights.q_gain, {D});
  expect_shape("k_gain", weights.k_gain, {D});
  expect_shape("w_o", weights.w_o, {C, H * D});
}

}  // namespace t2t
