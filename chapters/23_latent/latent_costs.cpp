#include "23_latent/latent_costs.hpp"

#include <fmt/format.h>

#include "05_kv_cache/kv_cache.hpp"
#include "program/print.hpp"
#include "shapes.hpp"

namespace t2t {

LatentSettings deepseek_v3() {
  return {
      .C = 7168, .H = 128, .N = 128, .R = 64, .Dv = 128, .K = 512, .Q = 1536, .m = yarn_m(40, 1)};
}
LatentSettings deepseek_v2_lite() {
  return {
      .C = 2048, .H = 16, .N = 128, .R = 64, .Dv = 128, .K = 512, .Q = 0, .m = yarn_m(40, 0.707)};
}

static ModelCache latent_model(const std::string& name, std::size_t L,
                               const LatentSettings& settings) {
  return {name, fmt::format("{}·({} + {})", L, settings.K, settings.R), L * settings.row_width()};
}
static ModelCache grouped_model(const std::string& name, std::size_t L, std::size_t G,
                                std::size_t D) {
  return {name, fmt::format("{}·2·{}·{}", L, G, D), kv_cache_bytes(L, G, 1, D, 1)};
}

std::vector<ModelCache> model_caches() {
  const LatentSettings v3 = deepseek_v3();
  const std::size_t expanded = v3.H * (v3.query_width() + v3.Dv);  // keys and values of a layer
  return {latent_model("DeepSeek-V3", 61, v3),
          {"its heads, expanded", fmt::format("61·{}·({} + {})", v3.H, v3.query_width(), v3.Dv),
           61 * expanded},
          latent_model("DeepSeek-V2", 60, v3),  // with the same K and R
          latent_model("DeepSeek-V2-Lite", 27, deepseek_v2_lite()),
          grouped_model("Llama 3, 70B (GQA)", 80, 8, 128),
          grouped_model("Llama 3, 8B (GQA)", 32, 8, 128),
          grouped_model("LLaMA 2, 7B (MHA)", 32, 32, 128),
          grouped_model("Falcon-7B (MQA)", 32, 1, 64)};
}

std::size_t absorbed_operations(const LatentSettings& settings) {
  return 2 * settings.H * (2 * settings.K + settings.R);
}
std::size_t expanded_operations(const LatentSettings& settings) {
  return 2 * settings.H * (settings.query_width() + settings.Dv);
}
std::size_t expanding_operations(const LatentSettings& settings) {
  return 2 * settings.H * settings.K * (settings.N + settings.Dv);
}

std::size_t queries_worth_expanding(const LatentSettings& settings) {
  const std::size_t both = settings.N + settings.Dv, twice = 2 * settings.K;
  expect(both < twice, "N + Dv", fmt::format("below 2·K = {}", twice), both);
  return (settings.K * both + twice - both - 1) / (twice - both);
}

}  // namespace t2t
