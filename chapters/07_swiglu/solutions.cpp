// The solutions to the problems on paper of docs/07_swiglu.md.
#include "program/solutions.hpp"

#include <fmt/format.h>

#include <cmath>

#include "07_swiglu/feed_forward.hpp"
#include "program/print.hpp"

namespace t2t {

static Solution width_of_llama() {
  const std::size_t C = 5120, F = gated_width(C);
  return {"width of LLaMA 13B",
          fmt::format("8·{} / 3 is {}, rounded down, and the next multiple of 256 is F = {}. The "
                      "three matrices have 3·C·F = {} parameters, two of width 4·C have {}.",
                      C, with_commas(8 * C / 3), with_commas(F), with_commas(3 * C * F),
                      with_commas(2 * 4 * C * C))};
}

static Solution two_slopes() {
  const Tensor<2> x = {{std::log(3.f), -std::log(3.f)}}, y = silu(x);
  return {"two slopes", fmt::format("¾ · ln 3 = {:.3f} and -¼ · ln 3 = {:.3f}. Their difference, "
                                    "{:.3f}, is ln 3 itself, since σ(x) + σ(-x) = 1.",
                                    y(0, 0), y(0, 1), y(0, 0) - y(0, 1))};
}

static Solution twice_the_input() {
  const Tensor<2> gate = {{1, 2}}, up = {{3, 6}};
  const auto factor = [](const Tensor<2>& y) { return y(0, 1) / y(0, 0); };
  return {"twice the input",
          fmt::format("ReLU: {:g}. ReGLU: {:g}, since gate and up both double. SwiGLU: {:.2f}, "
                      "since σ(2) is larger than σ(1) too.",
                      factor(activate(Activation::relu, up)),
                      factor(gated(Activation::reglu, gate, up)),
                      factor(gated(Activation::swiglu, gate, up)))};
}

static Solution share_of_the_network() {
  const std::size_t C = 4096, H = 32, G = 8, D = 128, F = 14336;  // Llama 3 8B
  const std::size_t network = 3 * C * F, attention = 2 * C * D * (H + G);
  return {"share of the network",
          fmt::format("The network has 3·C·F = {}, attention 2·C·D·(H + G) = {}. So {:.1f} % of "
                      "the block's matrices are the network's.",
                      with_commas(network), with_commas(attention),
                      100 * double(network) / double(network + attention))};
}

std::vector<Solution> solutions() {
  return {width_of_llama(), two_slopes(), twice_the_input(), share_of_the_network()};
}

}  // namespace t2t
