// The solutions to the problems on paper of docs/13_training.md.
#include "program/solutions.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <utility>

#include "09_language_model/accounts/accounts.hpp"
#include "13_training/backward/cross_entropy.hpp"
#include "13_training/trainer/adamw.hpp"
#include "memory.hpp"
#include "program/print.hpp"

namespace t2t {

static Config llama_3_8b() {
  return {.block = llama_style(4096, 32, 8, 14336), .L = 32, .V = 128256, .T_max = 8192};
}

static Solution gradient_of_logits() {
  Tensor<2> logits = {{0, std::log(2.f), std::log(5.f)}};
  const std::vector<int> targets = {1};
  std::vector<double> losses(1);
  const double loss = cross_entropy_rows(logits, targets, 1, losses);
  return {"gradient of logits",
          fmt::format("p = (1, 2, 5) / 8, so the loss is ln 4 = {:.3f}. The gradient is p, less 1 "
                      "for the target: {:.3g}. Its sum is {:g}.",
                      loss, fmt::join(row(logits, 0), ", "),
                      std::round(double(xt::sum(logits)()) * 1e6) / 1e6 + 0.0)};
}

static Solution two_steps() {
  Tensor<1> w = {0}, g = {1000}, mean = {0}, square = {0};
  std::vector<double> scratch(adamw_pieces(1));
  const auto step = [&](std::size_t n) {
    const float before = w(0);
    adamw_step({{}, 0.01f, n}, 0, row(w), row(std::as_const(g)), row(mean), row(square), scratch);
    return w(0) - before;
  };
  const float first = step(1);
  g(0) = -1000;
  const float second = step(2);
  return {"two steps",
          fmt::format("{:.4f}: the rate, whatever the gradient. Then mean is -10 / 0.19 = {:.1f} "
                      "and the root of square {:.0f}: the weight moves by {:.6f}. The first step "
                      "was {:.0f} times as large, since now the gradients disagree.",
                      first, mean(0) / (1 - 0.81f), std::sqrt(square(0) / (1 - 0.9025f)), second,
                      -first / second)};
}

static Solution memory_to_train() {
  const TrainingMemory memory = training_memory(llama_3_8b(), 1, 8192, 2);
  const double all = memory.weights + memory.gradients + memory.optimizer;
  return {"memory to train", fmt::format("2 + 2 + 4 + 4 + 4 = {:g} bytes per parameter: {}, of "
                                         "which the weights that the forward pass reads are {}.",
                                         all / double(total(count_parameters(llama_3_8b()))),
                                         bytes_text(all), bytes_text(memory.weights))};
}

static Solution years_of_training() {
  const double flops = 6 * double(total(count_parameters(llama_3_8b()))) * 15e12;
  return {"years of training",
          fmt::format("6 · {} · 15 · 10¹² = {:.1f} · 10²³ FLOPs, {:.2g} · 10⁹ seconds: {:.0f} "
                      "years.",
                      with_commas(total(count_parameters(llama_3_8b()))), flops / 1e23,
                      flops / 4e14 / 1e9, flops / 4e14 / (365.25 * 24 * 3600))};
}

std::vector<Solution> solutions() {
  return {gradient_of_logits(), two_steps(), memory_to_train(), years_of_training()};
}

}  // namespace t2t
