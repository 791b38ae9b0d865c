// The solutions to the problems on paper of docs/14_mixture_of_experts.md and docs/14_balance.md.
#include "program/solutions.hpp"

#include <fmt/format.h>

#include "09_language_model/accounts/accounts.hpp"
#include "14_mixture_of_experts/model/mixture_counts.hpp"
#include "14_mixture_of_experts/training/balance.hpp"
#include "program/print.hpp"

namespace t2t {

static Solution two_experts() {
  Tensor<2> scores_as_x = {{0, 1, 2}}, router = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
  const Routed routed = route(scores_as_x, router, {.k = 2});
  return {"two experts",
          fmt::format("p = ({:.3f}, {:.3f}, {:.3f}). Experts {} and {} are chosen, with weights "
                      "{:.3f} and {:.3f}: a softmax of 2 and 1.",
                      routed.p(0, 0), routed.p(0, 1), routed.p(0, 2), routed.experts[0],
                      routed.experts[1], routed.weights(0, 0), routed.weights(0, 1))};
}

static Solution parameters_of_a_mixture() {
  Config config{.block = llama_style(2048, 16, 16, 1024), .L = 16, .V = 50304, .T_max = 4096};
  config.block.experts = 64, config.block.chosen = 8;
  config.block.head_norms = config.block.heads_together = true;
  const std::size_t expert = 3 * 2048 * 1024, all = 16 * 64 * expert, active = 16 * 8 * expert;
  return {
      "experts of OLMoE",
      fmt::format("An expert has 3·2048·1024 = {} parameters. All experts together have {}, and "
                  "a token's experts {}. With all else, the model has {} parameters, of which {} "
                  "are active.",
                  with_commas(expert), with_commas(all), with_commas(active),
                  with_commas(total(count_parameters(config))),
                  with_commas(active_parameters(config)))};
}

static Solution uneven_load() {
  Routed routed{{}, {{0.8f, 0.2f}, {0.7f, 0.3f}, {0.9f, 0.1f}, {0.4f, 0.6f}}, {0, 0, 0, 1}, {}};
  Tensor<2> dp = xt::zeros<float>({4, 2});
  const double loss = balance_loss(routed, 1, dp);
  return {"uneven load",
          fmt::format("f = (0.75, 0.25) and P = (0.7, 0.3), so the loss is "
                      "2·(0.525 + 0.075) = {:.1f}. The gradient of each p of expert 0 "
                      "is 2·0.75/4 = {:.3f}, and of expert 1 {:.3f}.",
                      loss, dp(0, 0), dp(0, 1))};
}

static Solution batch_of_a_mixture() {
  const double touched = experts_touched(8, 2, 4);
  return {"batch of four",
          fmt::format("8·(1 − (3/4)⁴) = {:.2f} experts. A step reads {:.2f} times the experts that "
                      "one token reads, for four tokens.",
                      touched, touched / 2)};
}

std::vector<Solution> solutions() {
  return {two_experts(), parameters_of_a_mixture(), uneven_load(), batch_of_a_mixture()};
}

}  // namespace t2t
