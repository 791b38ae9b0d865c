#include "13_training/trainer/loss_curve.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "figure/axes.hpp"
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

/// Steps and losses, where the loss was measured.
template <class Loss>
static std::vector<Place> measured(const LossCurve& curve, Loss loss) {
  std::vector<Place> values;
  for (const LossPoint& point : curve) {
    if (!std::isfinite(loss(point))) continue;
    values.push_back({double(point.step.n), loss(point)});
  }
  return values;
}

/// The axes, with a tick for each integer, or for ten places when there are more.
static Axes axes_of(const LossCurve& curve) {
  const Range range = range_of(curve);
  const double steps = double(curve.back().step.n);
  Axes axes = {{0, steps, 40, 640}, {range.low, range.high, 330, 30}, {}, {}, "", "nats per token"};
  axes.x_ticks = {{0, "0"}, {steps, fmt::format("step {}", curve.back().step.n)}};
  const std::size_t ticks = std::size_t(std::min(10.0, range.high - range.low));
  for (std::size_t i = 0; i <= ticks; ++i) {
    const double value = range.low + double(i) / double(ticks) * (range.high - range.low);
    axes.y_ticks.push_back({value, fmt::format("{:.0f}", value)});
  }
  return axes;
}

std::string svg_of(const LossCurve& curve) {
  if (curve.empty()) return "";
  const Axes axes = axes_of(curve);
  const auto training = measured(curve, [](const LossPoint& p) { return stored(p.step.loss); });
  const auto held_out = measured(curve, [](const LossPoint& p) { return stored(p.held_out); });
  const auto last = [](const std::vector<Place>& values) {
    return values.empty() ? "not measured" : fmt::format("{:.3f} at the end", values.back().y);
  };
  Figure figure(690, 360, fmt::format("Loss in nats over {} steps", curve.back().step.n),
                fmt::format("The training loss as a line, {}, and the held-out loss as a dashed "
                            "line, {}.",
                            last(training), last(held_out)));
  draw_axes(figure, axes);
  figure.line(places_of(axes, training), {Tone::first, 2});
  if (!held_out.empty()) figure.line(places_of(axes, held_out), {Tone::second, 2, true});
  figure.text({axes.x.to, 46}, "training", {Tone::first, Anchor::end});
  figure.text({axes.x.to, 66}, "held out, dashed", {Tone::second, Anchor::end});
  return figure.svg();
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
