// The show's part on the root of D: what it does to the weights and to their derivatives.
#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "04_causal_attention/attention.hpp"
#include "04_causal_attention/softmax.hpp"
#include "program/print.hpp"
#include "program/program.hpp"

namespace t2t {

inline double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / double(values.size());
}

/// The upper one of the middle two, when there is an even number of them.
inline double median(std::vector<double> values) {
  std::ranges::nth_element(values, values.begin() + long(values.size() / 2));
  return values[values.size() / 2];
}

/// One number for each row of weights.
struct RowMeasures {
  std::vector<double> largest;   // the largest weight
  std::vector<double> slope;     // Σ over s of ∂weight[s] / ∂score[s] = 1 − Σ weight²
  std::vector<double> gradient;  // the length (Frobenius norm) of ∂weights / ∂q, a matrix [S, D]
};

/// From ∂weight[s] / ∂score[j] = weight[s]·(1 if s = j else 0) − weight[s]·weight[j] and
/// score[j] = scale · q·k[j], row s of ∂weights / ∂q is scale · weight[s] · (k[s] − mean), where
/// mean is the keys' mean with these weights.
inline RowMeasures measure_rows(const Tensor<2>& weights,  // [T, S]
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
    measures.largest.push_back(*std::ranges::max_element(w));
    measures.slope.push_back(1 - squares);
    measures.gradient.push_back(scale * std::sqrt(gradient));
  }
  return measures;
}

inline void show_root(const Program& program) {
  print_section("Why scores are divided by the root of D");
  Table table({">D", "scores", ">variance", ">mean largest", ">median slope", ">mean slope",
               ">median gradient", ">mean gradient"});
  for (const std::size_t D : {4, 16, 64, 256, 1024}) {
    Random random(program.seed());
    const Tensor<2> q = random.normal<2>({256, D}), k = random.normal<2>({64, D});
    const float root = std::sqrt(float(D));
    const Tensor<2> divided = attention_scores(q, k, Mask::none);  // [256, 64]
    for (const bool divides : {false, true}) {
      const Tensor<2> scores = divides ? divided : Tensor<2>(divided * root);
      const RowMeasures rows = measure_rows(softmax(scores), k, divides ? 1 / root : 1);
      table.add({divides ? "" : std::to_string(D), divides ? "q·k / √D" : "q·k",
                 fmt::format("{:.1f}", double(xt::mean(scores * scores)())),
                 fmt::format("{:.2f}", mean(rows.largest)),
                 fmt::format("{:.4f}", median(rows.slope)), fmt::format("{:.4f}", mean(rows.slope)),
                 fmt::format("{:.3f}", median(rows.gradient)),
                 fmt::format("{:.3f}", mean(rows.gradient))});
    }
  }
  table.print();
  fmt::print("\n");
  print_paragraph(
      "256 random queries against 64 keys, all numbers from N(0, 1); means and medians are over "
      "the 256 rows. largest: the row's largest weight. slope: the sum over keys of d weight / d "
      "score. gradient: the length (the root of the sum of squares) of the matrix d weights / d q, "
      "which also has the factor k and, where scores were divided, the factor 1 / √D.");
}

}  // namespace t2t
