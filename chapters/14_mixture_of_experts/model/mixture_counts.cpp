#include "14_mixture_of_experts/model/mixture_counts.hpp"

#include <fmt/core.h>

#include <cmath>

#include "09_language_model/accounts/accounts.hpp"
#include "shapes.hpp"

namespace t2t {

std::size_t active_parameters(const Config& config) {
  expect(config.layers.empty(), "layers with settings of their own", "none", config.layers.size());
  const BlockSettings& s = config.block;
  const std::size_t all = total(count_parameters(config));
  const std::size_t matrices = is_gated(s.activation) ? 3 : 2;
  const std::size_t idle = s.experts - s.chosen;  // of each layer
  return all - config.L * idle * matrices * s.C * s.F;
}

double experts_touched(std::size_t E, std::size_t k, std::size_t T) {
  expect(k >= 1 && k <= E, "k, the experts of a token", fmt::format("1 to E = {}", E), k);
  return double(E) * (1 - std::pow(1 - double(k) / double(E), double(T)));
}

std::vector<PublishedMixture> published_mixtures() {
  const auto with = [](BlockSettings block, std::size_t experts, std::size_t chosen) {
    block.experts = experts, block.chosen = chosen;
    return block;
  };
  BlockSettings mixtral = with(llama_style(4096, 32, 8, 14336), 8, 2);
  BlockSettings olmoe = with(llama_style(2048, 16, 16, 1024), 64, 8);
  olmoe.head_norms = olmoe.heads_together = true, olmoe.normalized = false;
  BlockSettings qwen_2 = with(llama_style(2048, 16, 16, 1408), 60, 4);
  qwen_2.biases = Biases::qkv, qwen_2.shared = 5632, qwen_2.shared_gate = true;
  BlockSettings qwen = with(llama_style(2048, 32, 4, 768), 128, 8);
  qwen.D = 128, qwen.head_norms = true;
  BlockSettings granite = with(llama_style(1024, 16, 8, 512), 32, 8);
  return {{"Mixtral 8x7B", {.block = mixtral, .L = 32, .V = 32000, .T_max = 32768}},
          {"OLMoE 1B-7B", {.block = olmoe, .L = 16, .V = 50304, .T_max = 4096}},
          {"Qwen1.5-MoE A2.7B", {.block = qwen_2, .L = 24, .V = 151936, .T_max = 8192}},
          {"Qwen3 30B-A3B", {.block = qwen, .L = 48, .V = 151936, .T_max = 40960}},
          {"Granite 3.1 1B-A400M",
           {.block = granite, .L = 24, .V = 49155, .T_max = 131072, .tied = true}}};
}

}  // namespace t2t
