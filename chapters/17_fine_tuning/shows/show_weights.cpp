#include "17_fine_tuning/shows/show_weights.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "17_fine_tuning/preferences/dpo.hpp"
#include "17_fine_tuning/rewards/grpo.hpp"
#include "17_fine_tuning/rewards/kl.hpp"
#include "17_fine_tuning/rewards/pass_at_k.hpp"
#include "17_fine_tuning/rewards/sums.hpp"
#include "program/print.hpp"

namespace t2t {

/// A cell for each learned token of both answers.
static std::vector<std::string> cells_of(const std::string& method, const Batch& batch,
                                         ConstRow weights) {
  std::vector<std::string> cells = {method};
  for (std::size_t i = 0; i < weights.size(); ++i)
    if (batch.targets[i] != not_learned)
      cells.push_back(weights[i] == 0 ? "0" : fmt::format("{:+.3f}", weights[i]));
  return cells;
}

void show_token_weights() {
  const Sum sum = {37, 25};
  const std::vector<Transcript> answers = {sum_lesson(sum, "62"), sum_lesson(sum, "063")};
  Batch batch = make_batch(2, sums_T);
  fill(batch, answers);
  const std::vector<double> equal(batch.targets.size()), rewards = {1, 0}, scores = {0, 0};
  std::vector<float> weights(batch.targets.size());

  print_section("One backward pass: the weight of each token, by method");
  Table table({"", ">6", ">2", ">.", ">0", ">6", ">3", ">."});
  for (std::size_t i = 0; i < weights.size(); ++i)
    weights[i] = i < batch.T && batch.targets[i] != not_learned ? 1.0f / 3 : 0;
  table.add(cells_of("SFT on the first answer", batch, weights));
  dpo_weights(batch, scores, scores, {}, weights);
  table.add(cells_of("DPO, beta 0.1, first step", batch, weights));
  GrpoOptions options{.group = 2, .most = sum_most};
  for (const auto& [name, share] : {std::pair{"GRPO, own length", TokenShare::own_length},
                                    std::pair{"DAPO, all tokens", TokenShare::all_tokens},
                                    std::pair{"Dr. GRPO, constant", TokenShare::constant}}) {
    options.share = share;
    grpo_weights(batch, {rewards, equal, equal, {}}, options, weights);
    table.add(cells_of(name, batch, weights));
  }
  table.print();
  fmt::print("\n");
  print_paragraph(
      "Two answers to 37+25=, the right one, 62, and a wrong one, 063. For GRPO they are a group "
      "with the rewards 1 and 0, and an answer has at most 5 tokens. A positive weight makes a "
      "token likelier.");
}

void show_kl_estimates() {
  constexpr std::array p = {0.6, 0.3, 0.1}, ref = {0.2, 0.5, 0.3};
  // The gradient of a mean over drawn tokens with respect to the logits is Σ p·slope·(onehot − p).
  const auto gradient_of = [&](auto slope) {
    std::array<double, 3> gradient = {};
    for (std::size_t drawn = 0; drawn < 3; ++drawn)
      for (std::size_t v = 0; v < 3; ++v)
        gradient[v] += p[drawn] * slope(std::log(p[drawn] / ref[drawn])) * ((drawn == v) - p[v]);
    return gradient;
  };
  const auto text = [](const std::array<double, 3>& g) {
    std::string line;
    for (const double x : g) line += fmt::format("{:7.3f}", x == 0 || std::abs(x) < 5e-4 ? 0.0 : x);
    return line;
  };
  double forward = 0, reverse = 0;
  std::array<double, 3> of_reverse = {};
  for (std::size_t v = 0; v < 3; ++v) {
    forward += p[v] * std::log(p[v] / ref[v]), reverse += ref[v] * std::log(ref[v] / p[v]);
    of_reverse[v] = p[v] - ref[v];
  }

  print_section("Three estimates of a KL divergence, from tokens that the model draws");
  Table table({"", ">mean", ">variance", ">mean gradient of the logits"});
  using Named = std::pair<const char*, KlEstimate (*)(double)>;
  for (const auto& [name, estimate] :
       {Named{"k1", kl_k1}, Named{"k2", kl_k2}, Named{"k3", kl_k3}}) {
    double mean = 0, square = 0;
    for (std::size_t v = 0; v < 3; ++v) {
      const double value = estimate(std::log(p[v] / ref[v])).value;
      mean += p[v] * value, square += p[v] * value * value;
    }
    const auto slope = [of = estimate](double x) { return of(x).slope; };
    table.add({name, fmt::format("{:.3f}", mean), fmt::format("{:.3f}", square - mean * mean),
               text(gradient_of(slope))});
  }
  table.add({"KL(p‖ref)", fmt::format("{:.3f}", forward), "",
             text(gradient_of([](double x) { return x; }))});
  table.add({"KL(ref‖p)", fmt::format("{:.3f}", reverse), "", text(of_reverse)});
  table.print();
  fmt::print("\n");
  print_paragraph(
      "p = (0.6, 0.3, 0.1), ref = (0.2, 0.5, 0.3); exact means over the three tokens. As values, "
      "k1 and k3 have the right mean. As losses, k1 has no gradient on average, k2 that of "
      "KL(p‖ref), and k3 that of KL(ref‖p).");
}

/// The probability of r right answers among m.
static double binomial(std::size_t m, std::size_t r, double p) {
  double choices = 1;
  for (std::size_t i = 0; i < r; ++i) choices *= double(m - i) / double(i + 1);
  return choices * std::pow(p, double(r)) * std::pow(1 - p, double(m - r));
}

void show_pass_at_k() {
  constexpr std::size_t m = 16, k = 8;
  print_section("pass@8 from 16 answers: the mean of two estimates over all draws");
  Table table({">p of a right answer", ">pass@8", ">1 - C(m - r, k)/C(m, k)", ">1 - (1 - r/m)^k"});
  for (const double p : {0.02, 0.1, 0.3}) {
    double unbiased = 0, plug_in = 0;
    for (std::size_t r = 0; r <= m; ++r) {
      unbiased += binomial(m, r, p) * pass_at_k(m, r, k);
      plug_in += binomial(m, r, p) * (1 - std::pow(1 - double(r) / m, double(k)));
    }
    table.add({fmt::format("{:.2f}", p), fmt::format("{:.3f}", 1 - std::pow(1 - p, double(k))),
               fmt::format("{:.3f}", unbiased), fmt::format("{:.3f}", plug_in)});
  }
  table.print();
}

}  // namespace t2t
