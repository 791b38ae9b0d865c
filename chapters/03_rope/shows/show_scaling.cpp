#include "03_rope/shows/show_scaling.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <numbers>

#include "03_rope/rope.hpp"
#include "03_rope/scaling/rope_scaling.hpp"
#include "03_rope/shows/fitted_score.hpp"
#include "program/print.hpp"

namespace t2t {

void show_beyond(std::size_t D, float theta, Random& random) {
  const std::size_t trained = 2048, pairs = D / 2;
  const double factor = 4;
  const Frequencies plain = rope_frequencies(D, theta);
  const std::vector<std::pair<std::string, Frequencies>> methods = {
      {"none", plain},
      {"linear", linear_scaling(plain, factor)},
      {"NTK-aware", ntk_scaling(D, theta, factor)},
      {"Llama 3", llama3_scaling(plain, {factor, 1, 4, trained})},
      {"YaRN", yarn_scaling(D, theta, {factor, 32, 1, trained})}};

  print_section("Beyond the trained length: trained on 2048 positions, used on 8192");
  Tensor<2> slower = empty(methods.size(), pairs);  // [methods, D/2]
  HeatMap options;
  for (std::size_t row = 0; row < methods.size(); ++row) {
    options.row_labels.push_back(methods[row].first);
    for (std::size_t i = 0; i < pairs; ++i)
      slower(row, i) = float(plain[i] / methods[row].second[i]);
  }
  print_paragraph(
      "By what factor each method slows each pair, fastest pair on the left (blank or lightest: "
      "hardly or not at all):");
  fmt::print("\n");
  print_heat_map(slower, options);
  fmt::print("\n");

  const FittedScore fitted(plain, trained, random);
  Table table({"method", ">pair 0 rotates by", ">pairs beyond trained angles", ">score factor",
               ">fitted score"});
  for (const auto& [name, frequencies] : methods) {
    std::size_t unseen = 0;
    for (std::size_t i = 0; i < pairs; ++i) {
      const double seen = std::min(double(trained) * plain[i], 2 * std::numbers::pi);
      unseen += std::min(factor * double(trained) * frequencies[i], 2 * std::numbers::pi) >
                seen * 1.00001;
    }
    const float magnitude = name == "YaRN" ? yarn_magnitude(factor) : 1;
    const double most = fitted.largest(frequencies, std::size_t(factor) * trained);
    const double degrees = frequencies[0] * 180 / std::numbers::pi;
    table.add({name, fmt::format("{:.1f}°", degrees), fmt::format("{} of {}", unseen, pairs),
               fmt::format("{:.2f}", magnitude * magnitude), fmt::format("{:.1f}", most)});
  }
  table.print();
  fmt::print("\n");
  print_paragraph(fmt::format(
      "A pair is beyond its trained angles if positions up to 8191 rotate it by angles that no "
      "trained position gave. The fitted score is a weighted sum of the pairs' cosines and sines, "
      "fitted to random values between -1 and 1 at trained distances, where its magnitude is at "
      "most {:.1f}. The table shows its largest magnitude up to distance 8191.",
      fitted.largest(plain, trained)));
}

}  // namespace t2t
