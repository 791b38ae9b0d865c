// The solutions to the problems on paper of docs/23_latent.md.
#include "program/solutions.hpp"

#include <fmt/format.h>

#include "23_latent/absorbed.hpp"
#include "23_latent/cache/latent_cache.hpp"
#include "23_latent/latent_costs.hpp"
#include "memory.hpp"
#include "program/print.hpp"

namespace t2t {

static Solution cache_of_v2_lite() {
  const LatentSettings lite = deepseek_v2_lite();
  return {"cache of DeepSeek-V2-Lite",
          fmt::format("27·(512 + 64)·2 = {} bytes per token, and {} in all. Two bytes for each of "
                      "16 heads' 192 + 128 elements in 27 layers would be {}.",
                      with_commas(latent_cache_bytes(27, 1, lite, 2)),
                      bytes_text(double(latent_cache_bytes(27, 32768, lite, 2))),
                      bytes_text(27.0 * 16 * (192 + 128) * 2 * 32768))};
}

static Solution absorbed_query() {
  const LatentSettings settings{.C = 3, .H = 1, .N = 2, .R = 2, .Dv = 1, .K = 3};
  const Tensor<2> q = {{2, 1, 5, 6}}, w_kvb = {{1, 0, 2}, {0, 3, 1}, {1, 1, 1}};
  const Tensor<2> absorbed = absorb_queries(q, w_kvb, settings);
  return {
      "an absorbed query",
      fmt::format("q̃ = 2·(1, 0, 2) + 1·(0, 3, 1) = ({}, {}, {}), and qʳ stays ({}, {}). Its "
                  "product with c = (1, 1, 1) is 10. In the plain form, kⁿ = (3, 4), and "
                  "2·3 + 1·4 is 10, too.",
                  absorbed(0, 0), absorbed(0, 1), absorbed(0, 2), absorbed(0, 3), absorbed(0, 4))};
}

static Solution worth_expanding() {
  const LatentSettings v3 = deepseek_v3();
  return {"a call of 100 tokens",
          fmt::format("Expanding a position has 2·H·K·(N + Dv) operations, and then each query has "
                      "2·H·(2·K − N − Dv) fewer. 512·256 / (1024 − 256) = 170.7: from {} tokens on "
                      "it pays. For 100 tokens the absorbed form has fewer operations, {} instead "
                      "of {} for each position and layer.",
                      queries_worth_expanding(v3), with_commas(100 * absorbed_operations(v3)),
                      with_commas(100 * expanded_operations(v3) + expanding_operations(v3)))};
}

static Solution key_heads() {
  return {"heads for the same bytes",
          "A layer of GQA caches 2·G·128 elements per token. 576 / 256 = 2.25: latent attention "
          "stores as much as 2.25 heads of keys and values, for 128 query heads."};
}

std::vector<Solution> solutions() {
  return {cache_of_v2_lite(), absorbed_query(), worth_expanding(), key_heads()};
}

}  // namespace t2t
