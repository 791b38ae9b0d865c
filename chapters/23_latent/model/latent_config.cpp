#include "23_latent/model/latent_config.hpp"

#include <fmt/core.h>

#include <cmath>

#include "shapes.hpp"

namespace t2t {

void expect_latent_config(const LatentConfig& config) {
  expect_latent(config.attention);
  expect(config.L >= 1, "L, the blocks", "at least 1", config.L);
  expect(config.V >= 1, "V, the vocabulary", "at least 1", config.V);
  expect(config.T_max >= 1, "T_max, the longest sequence", "at least 1", config.T_max);
  expect(config.dense <= config.L, "dense, the blocks without experts",
         fmt::format("at most L = {}", config.L), config.dense);
  expect(config.dense == 0 || config.F >= 1, "F, the width of a dense block's network",
         "at least 1", config.F);
  const std::size_t pairs = config.attention.R / 2;
  expect(config.frequencies.size() == pairs, "frequencies", fmt::format("R/2 = {}", pairs),
         config.frequencies.size());
  for (const double frequency : config.frequencies)
    expect(frequency > 0 && std::isfinite(frequency), "a frequency", "a finite number above 0",
           frequency);
  if (config.dense == config.L) return;
  expect(config.E >= 1, "E, the experts", "at least 1", config.E);
  expect(config.F_expert >= 1, "F_expert, the width of an expert", "at least 1", config.F_expert);
  expect_grouped(config.routing, config.E, 0);
}

}  // namespace t2t
