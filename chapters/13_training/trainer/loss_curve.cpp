#include "13_training/trainer/loss_curve.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "shapes.hpp"

namespace t2t {

/// A checkpoint keeps floats, so floats are written: a run that was resumed has the same lines.
static double stored(double x) { return double(float(x)); }

std::string csv_of(const LossCurve& curve) {
  std::string text = "step,loss,held_out,gradient_norm,rate,update_ratio\n";
  for (const LossPoint& point : curve) {
    const std::string held_out =
        std::isfinite(point.held_out) ? fmt::format("{:.6f}", stored(point.held_out)) : "";
    text += fmt::format("{},{:.6f},{},{:.5g},{:.5g},{:.4g}\n", point.step.n,
                        stored(point.step.loss), held_out, stored(point.step.gradient_norm),
                        point.step.rate, stored(point.step.update_ratio));
  }
  return text;
}

/// The integers between which all losses lie.
struct Range {
  double low, high;
};
static Range range_of(const LossCurve& curve) {
  Range range{curve[0].step.loss, curve[0].step.loss};
  for (const LossPoint& point : curve)
    for (const double loss : {point.step.loss, point.held_out})
      if (std::isfinite(loss)) range = {std::min(range.low, loss), std::max(range.high, loss)};
  return {std::floor(range.low), std::max(std::ceil(range.high), std::floor(range.low) + 1)};
}

/// "120.0,33.5 121.2,34.0 …": where the loss was measured.
template <class Loss>
static std::string polyline(const LossCurve& curve, Loss loss, double width, double height,
                            Range range) {
  const double steps = double(curve.back().step.n);
  std::string points;
  for (const LossPoint& point : curve) {
    if (!std::isfinite(loss(point))) continue;
    const double share = (loss(point) - range.low) / (range.high - range.low);
    points += fmt::format("{:.1f},{:.1f} ", 40 + width * double(point.step.n) / steps,
                          20 + height * (1 - share));
  }
  return points;
}

std::string svg_of(const LossCurve& curve) {
  constexpr double width = 600, height = 300;
  if (curve.empty()) return "";
  const Range range = range_of(curve);
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
      "height=\"{1}\" font-family=\"sans-serif\" font-size=\"14\">\n"
      "<title>Loss in nats over {2} steps</title>\n<g stroke=\"#808080\">\n"
      "<path d=\"M40 20V{3}H{4}\" fill=\"none\"/>\n</g>\n<g fill=\"#808080\">\n",
      width + 60, height + 50, curve.back().step.n, height + 20, width + 40);
  // A label for each integer, or for ten places when there are more.
  const std::size_t labels = std::size_t(std::min(10.0, range.high - range.low));
  for (std::size_t i = 0; i <= labels; ++i) {
    const double share = double(i) / double(labels);
    svg += fmt::format("<text x=\"32\" y=\"{:.1f}\" text-anchor=\"end\">{:.0f}</text>\n",
                       25 + height * (1 - share), range.low + share * (range.high - range.low));
  }
  svg += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"end\">step {}</text>\n</g>\n",
                     width + 40, height + 42, curve.back().step.n);
  svg += "<g fill=\"none\" stroke-width=\"2\">\n";
  svg += fmt::format(
      "<polyline stroke=\"#4c78a8\" points=\"{}\"/>\n",
      polyline(
          curve, [](const LossPoint& p) { return stored(p.step.loss); }, width, height, range));
  svg += fmt::format(
      "<polyline stroke=\"#e45756\" points=\"{}\"/>\n</g>\n",
      polyline(
          curve, [](const LossPoint& p) { return stored(p.held_out); }, width, height, range));
  svg += fmt::format(
      "<text x=\"{0}\" y=\"36\" text-anchor=\"end\" fill=\"#4c78a8\">training</text>\n"
      "<text x=\"{0}\" y=\"56\" text-anchor=\"end\" fill=\"#e45756\">held out</text>\n",
      width + 40);
  return svg + "</svg>\n";
}

std::string drawing_of(const LossCurve& curve, std::size_t columns, std::size_t rows) {
  expect(!curve.empty(), "curve", "at least 1 point", 0);
  expect(columns >= 1, "columns", "at least 1", columns);
  expect(rows >= 2, "rows", "at least 2", rows);
  columns = std::min(columns, curve.size());
  std::vector<double> means;
  for (std::size_t c = 0; c < columns; ++c) {
    const std::size_t from = c * curve.size() / columns, end = (c + 1) * curve.size() / columns;
    double sum = 0;
    for (std::size_t i = from; i < end; ++i) sum += curve[i].step.loss;
    means.push_back(sum / double(end - from));
  }
  const double low = *std::ranges::min_element(means);
  const double high = std::max(*std::ranges::max_element(means), low + 1e-6);
  std::string text;
  for (std::size_t r = 0; r < rows; ++r) {
    const double at = high - (high - low) * double(r) / double(rows - 1);
    text += fmt::format("  {:5.2f} │", at);
    for (const double mean : means) {
      const double place = (high - mean) / (high - low) * double(rows - 1);
      text += std::size_t(std::lround(place)) == r ? "•" : " ";
    }
    text += "\n";
  }
  return text + fmt::format("        step {} to {}\n", curve.front().step.n, curve.back().step.n);
}

}  // namespace t2t
