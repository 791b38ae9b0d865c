// The solutions to the problems on paper of docs/25_sinks.md and docs/25_gpt_oss.md.
#include "program/solutions.hpp"

#include <fmt/format.h>

#include <cmath>

#include "25_sinks/gpt_oss/clamped_experts.hpp"
#include "25_sinks/layers/layer_caches.hpp"
#include "25_sinks/mxfp4/mxfp4.hpp"
#include "program/print.hpp"

namespace t2t {

static Solution half_of_the_weight() {
  constexpr std::size_t window = 128, context = 131'072;
  return {"half of the weight",
          fmt::format("The keys' exponentials sum to S when all scores are 0, and the sink's is "
                      "e^σ. Half of the weight means e^σ = S, σ = ln S: {:.2f} for {} keys and "
                      "{:.2f} for {} keys.",
                      std::log(double(window)), window, std::log(double(context)),
                      with_commas(context))};
}

static Solution counted_twice() {
  const double exps[] = {1, 2}, sink = 3, values[] = {6, 12};
  const double sum = exps[0] * values[0] + exps[1] * values[1];
  const double once = sum / (exps[0] + exps[1] + sink),
               twice = sum / (exps[0] + exps[1] + 2 * sink);
  return {
      "counted twice",
      fmt::format("The weighted sum of the values is 1·6 + 2·12 = {:g}. With the sink once, the "
                  "exponentials sum to 1 + 2 + 3 = 6, and the head returns {:g}. With the sink "
                  "in both splits they sum to 9, and it returns {:.2f}. Every query's result is "
                  "too small, and nothing is infinite or NaN.",
                  sum, once, twice)};
}

static Solution rescaled_afterwards() {
  const double out = 10, lse = std::log(3.0);
  const auto with = [&](double sink) { return out / (1 + std::exp(sink - lse)); };
  return {"rescaled afterwards",
          fmt::format("sigmoid(lse - σ) is 1/2 for σ = ln 3 and 3/(3 + 9) = 1/4 for σ = ln 9: the "
                      "head returns {:g} and {:g}.",
                      with(std::log(3.0)), with(std::log(9.0)))};
}

static Solution block_of_mxfp4() {
  const float scale = e8m0_value(124);
  const auto value = [&](std::uint8_t code) { return scale * fp4_value(code); };
  Tensor<2> x = xt::zeros<float>({1, 32});
  x(0, 0) = 0.7f, x(0, 1) = -0.55f;
  const std::vector<std::uint8_t> packed = pack_mxfp4(x);
  return {"a block of MXFP4",
          fmt::format(
              "The scale is 2^(124 - 127) = {:g}. Code 5 is 3, code 11 is -1.5 and code 15 is -6, "
              "so byte 0 holds weight 0, {:g}, in its low half and weight 16, {:g}, in its high "
              "half, and weight 1 is {:g}. For 0.7 and -0.55, the floor of log2 0.7 is -1, and the "
              "scale 2^-3 = {:g}, e = {}. In scales, the weights are 5.6 and -4.4: 6 and -4, "
              "or {:g} and {:g}.",
              scale, value(5), value(11), value(15), e8m0_value(packed[0]), packed[0],
              e8m0_value(packed[0]) * fp4_value(packed[1] & 15),
              e8m0_value(packed[0]) * fp4_value(packed[2] & 15))};
}

static Solution shared_caches() {
  const std::vector<BlockSettings> layers = alternating_layers(32, 8, 128, 4, 1024);
  const std::size_t S = 65'536;
  const double own = layer_cache_bytes(layers, last_of_kind(layers, 0), S, 2),
               shared = layer_cache_bytes(layers, last_of_kind(layers, 16), S, 2);
  return {"shared caches",
          fmt::format("A position of a layer takes 2·8·128·2 = 4,096 bytes. With all caches, 8 "
                      "layers keep {} positions and 24 layers 1,024: {} bytes. With 16 readers, 4 "
                      "owners keep all and 12 a window: half, {} bytes. Without windows it would "
                      "be {} bytes with all caches.",
                      with_commas(S), with_commas(std::size_t(own)),
                      with_commas(std::size_t(shared)), with_commas(32 * 4096 * S))};
}

static Solution softmax_of_the_chosen() {
  const double a = 3.0 / (3 + 2), gate = 9, up = -0.5;
  return {"the chosen experts",
          fmt::format("The exponentials are 1, 3, 2 and 1. The two chosen weigh 3/(3 + 2) = {:g} "
                      "and {:g}. Softmax of all, without a division by the sum of the chosen, "
                      "would weigh them 3/7 and 2/7. The gate of {:g} is clamped to 7, where the "
                      "sigmoid is 1 to five digits: 7·({:g} + 1) = {:g}.",
                      a, 1 - a, gate, up, double(clamped_gate(7, -0.5f)))};
}

std::vector<Solution> solutions() {
  return {half_of_the_weight(), counted_twice(), rescaled_afterwards(),
          block_of_mxfp4(),     shared_caches(), softmax_of_the_chosen()};
}

}  // namespace t2t
