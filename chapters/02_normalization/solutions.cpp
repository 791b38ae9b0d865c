// The solutions to the problems on paper of docs/02_normalization.md.
#include "program/solutions.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "02_normalization/layer_norm.hpp"
#include "02_normalization/rms_norm.hpp"
#include "program/print.hpp"

namespace t2t {

static Tensor<1> ones(std::size_t C) { return xt::ones<float>({C}); }
static std::string numbers(const Tensor<2>& x) {
  return fmt::format("{:.3g}", fmt::join(row(x, 0), ", "));
}

static Solution both_norms() {
  const Tensor<2> x = {{1, 1, 7, 7}}, moved = x + 10;
  const Tensor<1> gain = ones(4), bias = xt::zeros<float>({4});
  return {
      "both norms",
      fmt::format(
          "RMSNorm divides by √25: {}. LayerNorm subtracts 4 and divides by √9: {}. After 10 is "
          "added, RMSNorm gives {}, and LayerNorm gives {} as before.",
          numbers(rms_norm(x, gain, 0)), numbers(layer_norm(x, gain, bias, 0)),
          numbers(rms_norm(moved, gain, 0)), numbers(layer_norm(moved, gain, bias, 0)))};
}

static Solution growth_of_the_stream() {
  const std::size_t parts = 2 * 80;  // Llama 2 70B
  std::size_t n = 0;
  while (std::exp2(double(n) / 2) <= 65504) ++n;
  return {"growth of the stream",
          fmt::format("With norms it is √(1 + {}) = {:.1f}. Without them it is √2 to the power n "
                      "after n sublayers, and 2^{} = {} is too large: after {} sublayers, in block "
                      "{}.",
                      parts, std::sqrt(1 + double(parts)), n / 2,
                      with_commas(std::size_t(1) << n / 2), n, (n + 1) / 2)};
}

static Solution small_rows() {
  const Tensor<2> x = {{0.001f, 0.001f}};
  return {
      "small rows",
      fmt::format(
          "10⁻³ / √(10⁻⁶ + 10⁻⁵) = {:.3f}, and with the smaller eps 10⁻³ / √(2 · 10⁻⁶) = {:.3f}.",
          rms_norm(x, ones(2), 1e-5f)(0, 0), rms_norm(x, ones(2), 1e-6f)(0, 0))};
}

static Solution parameters_of_norms() {
  const std::size_t norms = 2 * 12 + 1, all = 124439808, count = norms * 2 * 768;
  return {"parameters of norms",
          fmt::format("{} norms with a gain and a bias: {} · 2 · 768 = {}, which is {:.3f} %.",
                      norms, norms, with_commas(count), 100 * double(count) / double(all))};
}

std::vector<Solution> solutions() {
  return {both_norms(), growth_of_the_stream(), small_rows(), parameters_of_norms()};
}

}  // namespace t2t
