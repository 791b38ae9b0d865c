// The solutions to the problems on paper of docs/09_language_model.md.
#include "program/solutions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "04_causal_attention/softmax.hpp"
#include "09_language_model/accounts/accounts.hpp"
#include "09_language_model/loss.hpp"
#include "09_language_model/sampling.hpp"
#include "program/print.hpp"

namespace t2t {

static Config llama_3_8b() {
  return {.block = llama_style(4096, 32, 8, 14336), .L = 32, .V = 128256, .T_max = 8192};
}

static Solution three_probabilities() {
  const float given[] = {1 / 2.f, 1 / 4.f, 1 / 8.f};
  Tensor<2> logits = xt::zeros<float>({4, 2});  // a row for each id; the last row predicts nothing
  for (std::size_t t = 0; t < 3; ++t)
    logits(t, 0) = std::log(given[t]), logits(t, 1) = std::log(1 - given[t]);
  const std::vector<int> ids = {0, 0, 0, 0};
  const double loss = next_token_loss(logits, ids);
  return {"three probabilities",
          fmt::format("The loss is (1 + 2 + 3)·ln 2 / 3 = {:.3f}, and e to that power is {:.2f}. "
                      "The mean of 2, 4 and 8 would be {:.2f}.",
                      loss, std::exp(loss), (1 / given[0] + 1 / given[1] + 1 / given[2]) / 3)};
}

static Solution parameters_of_llama_3() {
  const Parameters count = count_parameters(llama_3_8b());
  return {"parameters of Llama 3 8B",
          fmt::format("Attention has {}, the networks {}, the norms {}, the table and the head {} "
                      "each: together {}. The rule gives {}.",
                      with_commas(count.attention), with_commas(count.feed_forward),
                      with_commas(count.norms), with_commas(count.head), with_commas(total(count)),
                      with_commas(12 * std::size_t(4096) * 4096 * 32))};
}

static Solution one_more_token() {
  const Flops flops = count_flops(llama_3_8b(), 1, 8192, 1);
  const double all = double(total(count_parameters(llama_3_8b())));
  return {"one more token",
          fmt::format("Matrices and head make {:.1f} GFLOP and attention 4·L·H·D·S = {:.1f}: "
                      "together {:.1f}. 2·N is {:.1f}: it counts the table, which is only looked "
                      "up, and leaves out attention.",
                      (total(flops) - flops.attention) / 1e9, flops.attention / 1e9,
                      total(flops) / 1e9, 2 * all / 1e9)};
}

static Solution filters() {
  const auto first = [](float temperature) {
    Tensor<1> logits = {std::log(0.5f), std::log(0.25f), std::log(0.15f), std::log(0.1f)};
    apply_temperature(row(logits), temperature);
    return logits;
  };
  const auto kept = [](const Tensor<1>& logits) {
    return std::ranges::count_if(logits, [](float logit) { return std::isfinite(logit); });
  };
  SamplingScratch scratch(4);
  Tensor<1> warm = first(1), cold = first(0.5f), by_share = first(1);
  keep_top_p(row(warm), 0.7f, scratch);
  const double likeliest = softmax(Tensor<2>{{cold(0), cold(1), cold(2), cold(3)}})(0, 0);
  keep_top_p(row(cold), 0.7f, scratch);
  keep_min_p(row(by_share), 0.25f);
  return {"filters",
          fmt::format("Top-p keeps {}, since 0.5 < 0.7 ≤ 0.5 + 0.25. At temperature ½ the squares "
                      "0.25, 0.0625 … are divided by their sum; the first becomes {:.2f}, and only "
                      "{} is kept. Min-p keeps {}, those of 0.125 or more.",
                      kept(warm), likeliest, kept(cold), kept(by_share))};
}

std::vector<Solution> solutions() {
  return {three_probabilities(), parameters_of_llama_3(), one_more_token(), filters()};
}

}  // namespace t2t
