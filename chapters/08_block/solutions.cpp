// The solutions to the problems on paper of docs/08_block.md.
#include "program/solutions.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "08_block/block.hpp"
#include "08_block/costs/block_costs.hpp"
#include "program/print.hpp"

namespace t2t {

static BlockSettings llama_3_8b() { return llama_style(4096, 32, 8, 14336); }

static Solution block_of_llama_3() {
  const BlockCosts costs = block_costs(llama_3_8b(), 1, 1);
  return {
      "block of Llama 3 8B",
      fmt::format("Attention has 2·C·D·(H + G) = {}, the network 3·C·F = {} and the two norms "
                  "{}: together {}.",
                  with_commas(costs.projections.parameters + costs.output.parameters),
                  with_commas(costs.feed_forward.parameters),
                  with_commas(costs.attention_norm.parameters + costs.feed_forward_norm.parameters),
                  with_commas(total(costs).parameters))};
}

static Solution long_context() {
  const BlockCosts costs = block_costs(llama_3_8b(), 1, 1);  // one key: S = 1
  const double matrices = total(costs).flops - costs.attention.flops;
  return {"long context",
          fmt::format("The matrices cost {} FLOPs, a key 4·H·D = {}. The keys cost as much as the "
                      "matrices at S = {}.",
                      with_commas(std::size_t(matrices)),
                      with_commas(std::size_t(costs.attention.flops)),
                      with_commas(std::size_t(std::lround(matrices / costs.attention.flops))))};
}

static Solution rule_of_twelve() {
  const std::size_t C = 768, all = total(block_costs(gpt2_style(C, 12), 1, 1)).parameters;
  return {"rule of twelve",
          fmt::format("The matrices have 4·C² + 8·C² = {}. The block has {} parameters: {} = {}·C "
                      "are biases and gains.",
                      with_commas(12 * C * C), with_commas(all), with_commas(all - 12 * C * C),
                      (all - 12 * C * C) / C)};
}

static Solution parts_that_add_nothing() {
  const Tensor<2> x = {{1, 7}};
  BlockSettings settings = llama_style(2, 1, 1, 1);
  Random random(1);
  const BlockWeights weights = draw_block(settings, random, 0);  // w_o and w_down are 0
  const auto result = [&](NormPlace place) {
    settings.norm_place = place;
    const Tensor<2> y = block(x, weights, settings, block_rope_table(settings, 1));
    return fmt::format("({:.3g})", fmt::join(row(y, 0), ", "));
  };
  return {
      "parts that add nothing",
      fmt::format(
          "Pre-norm returns x, {}. Post-norm normalizes the sums; here each sum is x itself, with "
          "rms 5: {}.",
          result(NormPlace::before), result(NormPlace::after))};
}

static Solution gradient_through_32_blocks() {
  return {"gradient through 32 blocks",
          fmt::format("With residual connections each sublayer multiplies by 1 + 0.1: 1.1^64 = "
                      "{:.0f}. Without them it is 0.1^64 = {:.0e}, which float32 rounds to {:g}.",
                      std::pow(1.1, 64), std::pow(0.1, 64), double(float(std::pow(0.1, 64))))};
}

std::vector<Solution> solutions() {
  return {block_of_llama_3(), long_context(), rule_of_twelve(), parts_that_add_nothing(),
          gradient_through_32_blocks()};
}

}  // namespace t2t
