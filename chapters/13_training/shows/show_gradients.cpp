#include "13_training/shows/show_gradients.hpp"

#include <fmt/format.h>

#include <cmath>
#include <string>
#include <utility>

#include "13_training/text/passages.hpp"
#include "13_training/trainer/adamw.hpp"
#include "program/print.hpp"

namespace t2t {

Config small_config(std::size_t C, std::size_t L, std::size_t T) {
  Config config = resized(preset("foundry-small"), {.C = C, .L = L, .H = 4, .G = 2, .V = 256});
  config.T_max = T;
  config.tied = true;
  return config;
}

Batch first_batch(const std::vector<int>& ids, std::size_t B, std::size_t T) {
  Batch batch = make_batch(B, T);
  fill_in_order(batch, ids, 0);
  return batch;
}

/// (loss(w + h·way) − loss(w − h·way)) / 2h for one tensor w of the model.
static double slope_along(Model& model, Gradients& passes, const Batch& batch, std::size_t tensor,
                          const Tensor<1>& way, double h) {
  const auto move = [&](double by) {
    model.change_weights([&](ModelWeights& weights) {
      const Row w = tensors_of(weights, model.config())[tensor].numbers;
      for (std::size_t i = 0; i < w.size(); ++i) w[i] += float(by * double(way(i)));
    });
    return passes.loss(model, batch) / double(count_learned(batch.targets));
  };
  const double above = move(h), below = move(-2 * h);
  move(h);
  return (above - below) / (2 * h);
}

/// 1 or −1 for each element of a tensor, drawn at random.
static Tensor<1> random_signs(std::size_t size, Random& random) {
  Tensor<1> signs = empty(size);
  for (float& sign : signs) sign = random.next_uniform() < 0.5 ? 1 : -1;
  return signs;
}

/// How far the derivatives along random signs are from Σ sign·g, as a share of g's norm: the root
/// mean square of some draws. If g is off by d, that is about |d|/|g|, also where g is 0.
static double off_at_random(Model& model, Gradients& passes, const Batch& batch, std::size_t tensor,
                            ConstRow g, double norm, Random& random) {
  constexpr std::size_t draws = 4;
  constexpr double step = 0.0005;  // of each element
  double squares = 0;
  for (std::size_t n = 0; n < draws; ++n) {
    const Tensor<1> signs = random_signs(g.size(), random);
    double promised = 0;
    for (std::size_t i = 0; i < g.size(); ++i) promised += double(signs(i)) * double(g[i]);
    const double off = slope_along(model, passes, batch, tensor, signs, step) - promised;
    squares += off * off;
  }
  return std::sqrt(squares / double(draws)) / norm;
}

void show_gradients(const std::vector<int>& ids, std::uint64_t seed) {
  constexpr std::size_t B = 2, T = 48;
  constexpr double step = 0.005;  // small beside the weights, and large beside their rounding
  const Config config = small_config(64, 2, T);
  Random random(seed), signs(seed, 1);
  Model model(config, draw_model(config, random));
  const Batch batch = first_batch(ids, B, T);
  Gradients passes(config, B, T);
  ModelWeights gradients = zeros_of(config);
  const double sum = passes.add(model, batch, 1 / float(B * T), gradients);

  print_section("Gradients, checked by finite differences");
  fmt::print("  {} bytes of text, loss {:.3f} nats (ln 256 is 5.545)\n\n", B * T,
             sum / double(B * T));
  Table table({"tensor", ">elements", ">|gradient|", ">derivative of the loss", ">ratio", ">off"});
  const std::vector<ListedTensor> list = tensors_of(gradients, config);
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (list[i].info.layer.value_or(0) > 0) continue;  // the first layer stands for all
    const double norm = gradient_norm({list[i]});
    Tensor<1> way = empty(list[i].numbers.size());
    for (std::size_t k = 0; k < way.size(); ++k) way(k) = float(double(list[i].numbers[k]) / norm);
    const double slope = slope_along(model, passes, batch, i, way, step);
    const double off = off_at_random(model, passes, batch, i, list[i].numbers, norm, signs);
    table.add({full_name(list[i].info), with_commas(list[i].numbers.size()),
               fmt::format("{:.4f}", norm), fmt::format("{:.4f}", slope),
               fmt::format("{:.3f}", slope / norm), fmt::format("{:.3f}", off)});
  }
  table.print();
  fmt::print("\n");
  print_paragraph(fmt::format(
      "Each tensor in turn is moved along its gradient by {} to either side. The loss must then "
      "change by the gradient's length times the distance moved, so the ratio must be 1. A "
      "gradient with a part missing can have this ratio too. Each tensor is therefore also moved "
      "in random directions; off is how far the loss's derivatives there are from what the "
      "gradient promises, as a share of its length, and must be near 0.",
      step));
}

}  // namespace t2t
