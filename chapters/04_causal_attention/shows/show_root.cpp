#include "04_causal_attention/shows/show_root.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "04_causal_attention/attention.hpp"
#include "04_causal_attention/softmax.hpp"
#include "program/print.hpp"
#include "program/program.hpp"
#include "statistics.hpp"

namespace t2t {

/// One value for each row of weights.
struct RowMeasures {
  std::vector<double> largest;     // the largest weight
  std::vector<double> saturated;   // 1 if the largest weight is above 0.99, otherwise 0
  std::vector<double> derivative;  // Σ over s of ∂weight[s] / ∂score[s] = 1 − Σ weight²
  std::vector<double> gradient;  // the length (Frobenius norm) of ∂weights / ∂q, a matrix [S, D]
};

/// From ∂weight[s] / ∂score[j] = weight[s]·(1 if s = j else 0) − weight[s]·weight[j] and
/// score[j] = scale · q·k[j], row s of ∂weights / ∂q is scale · weight[s] · (k[s] − mean), where
/// mean is the keys' mean with these weights.
static RowMeasures measure_rows(const Tensor<2>& weights,  // [T, S]
                                const Tensor<2>& k,        // [S, D]
                                double scale) {
  RowMeasures measures;
  for (std::size_t t = 0; t < weights.shape(0); ++t) {
    const ConstRow w = row(weights, t);
    std::vector<double> mean_key(k.shape(1));
    double squares = 0, gradient = 0;
    for (std::size_t s = 0; s < w.size(); ++s) {
      squares += double(w[s]) * w[s];
      for (std::size_t d = 0; d < mean_key.size(); ++d) mean_key[d] += double(w[s]) * k(s, d);
    }
    for (std::size_t s = 0; s < w.size(); ++s) {
      double apart = 0;  // squared
      for (std::size_t d = 0; d < mean_key.size(); ++d)
        apart += (k(s, d) - mean_key[d]) * (k(s, d) - mean_key[d]);
      gradient += double(w[s]) * w[s] * apart;
    }
    const double largest = *std::ranges::max_element(w);
    measures.largest.push_back(largest);
    measures.saturated.push_back(largest > 0.99 ? 1 : 0);
    measures.derivative.push_back(1 - squares);
    measures.gradient.push_back(scale * std::sqrt(gradient));
  }
  return measures;
}

void show_root(const Program& program) {
  print_section("Why scores are divided by the root of D");
  Table table({">D", "scores", ">variance", ">largest", ">saturated", ">derivative",
               ">gradient: 10 %", ">50 %", ">90 %", ">mean"});
  for (const std::size_t D : {64, 128, 1024}) {
    Random random(program.seed());
    const Tensor<2> q = random.normal<2>({256, D}), k = random.normal<2>({64, D});
    const float root = std::sqrt(float(D));
    const Tensor<2> divided = attention_scores(q, k, Mask::none);  // [256, 64]
    for (const bool divides : {false, true}) {
      const Tensor<2> scores = divides ? divided : Tensor<2>(divided * root);
      const RowMeasures rows = measure_rows(softmax(scores), k, divides ? 1 / root : 1);
      std::vector<std::string> cells = {
          divides ? "" : std::to_string(D),
          divides ? "q·k / √D" : "q·k",
          fmt::format("{:.1f}", double(xt::mean(scores * scores)())),
          fmt::format("{:.2f}", mean(rows.largest)),
          fmt::format("{:.0f} %", 100 * mean(rows.saturated)),
          fmt::format("{:.4f}", quantile(rows.derivative, 0.5)),
      };
      for (const double share : {0.1, 0.5, 0.9})
        cells.push_back(
            fmt::format("{:.{}f}", quantile(rows.gradient, share), share < 0.9 ? 4 : 3));
      cells.push_back(fmt::format("{:.4f}", mean(rows.gradient)));
      table.add(cells);
    }
  }
  table.print();
  fmt::print("\n");
  print_paragraph(
      "256 random queries, one in each row, and 64 random keys; all elements are from N(0, 1).");
  print_paragraph(
      "largest: the mean of the rows' largest weights. saturated: the share of rows in which one "
      "weight is above 0.99. derivative: the median over the rows of Σ w(1 − w).");
  print_paragraph(
      "gradient: the length (the root of the sum of squares) of the matrix d weights / d q. The "
      "last four columns show its 10th, 50th and 90th percentile over the rows, and its mean.");
}

}  // namespace t2t
