#include "18_experiments/shows/figure_of_muon.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "18_experiments/muon/compare_optimizers.hpp"
#include "figure/axes.hpp"
#include "program/progress.hpp"

namespace t2t {

static constexpr std::size_t curve_steps = 300, curve_group = 10, curve_seeds = 3;

/// Losses of curve_group steps: the mean of all seeds, and the seeds' least and largest means.
struct LossRange {
  double mean, least, most;
};

static std::vector<LossRange> loss_ranges(OptimizerRun run, std::span<const int> train,
                                          const char* name) {
  std::vector<LossRange> ranges(curve_steps / curve_group, {0, INFINITY, -INFINITY});
  for (run.seed = 1; run.seed <= curve_seeds; ++run.seed) {
    show_progress(fmt::format("  {}, seed {} ", name, run.seed));
    const std::vector<double> losses = losses_of(run, train);
    for (std::size_t i = 0; i < ranges.size(); ++i) {
      const auto from = losses.begin() + std::ptrdiff_t(i * curve_group);
      const double mean = std::accumulate(from, from + curve_group, 0.0) / double(curve_group);
      ranges[i].mean += mean / double(curve_seeds);
      ranges[i].least = std::min(ranges[i].least, mean);
      ranges[i].most = std::max(ranges[i].most, mean);
    }
  }
  show_progress("");
  return ranges;
}

static void draw_ranges(Figure& figure, const Axes& axes, const std::vector<LossRange>& ranges,
                        Tone tone, bool dashed) {
  std::vector<Place> means;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    const double left = axes.x.at(double(i * curve_group)),
                 right = axes.x.at(double((i + 1) * curve_group));
    const double top = axes.y.at(ranges[i].most), bottom = axes.y.at(ranges[i].least);
    figure.box({left, top, right - left, bottom - top}, tone, 0.25);
    means.push_back({(double(i) + 0.5) * curve_group, ranges[i].mean});
  }
  figure.line(places_of(axes, means), {tone, 2, dashed});
}

std::string figure_of_muon(std::span<const int> train) {
  const Config config{
      .block = llama_style(64, 4, 4, 170), .L = 2, .V = 256, .T_max = experiment_T, .tied = true};
  const auto adamw = loss_ranges({config, curve_steps, 0.008f}, train, "AdamW");
  const auto muon = loss_ranges({config, curve_steps, 0.064f, 0.016f}, train, "Muon");
  const Axes axes = {{0, curve_steps, 40, 640},
                     {1, 6, 330, 30},
                     {{0, "0"}, {100, "100"}, {200, "200"}, {300, "step 300"}},
                     {{1, "1"}, {2, "2"}, {3, "3"}, {4, "4"}, {5, "5"}, {6, "6"}},
                     "",
                     "nats per byte"};
  Figure figure(690, 360, "Training loss with AdamW and with Muon",
                fmt::format("Means of three seeds and ten steps, with the seeds' range. AdamW, "
                            "dashed, ends at {:.2f}, and Muon at {:.2f}.",
                            adamw.back().mean, muon.back().mean));
  draw_axes(figure, axes);
  draw_ranges(figure, axes, adamw, Tone::second, true);
  draw_ranges(figure, axes, muon, Tone::first, false);
  figure.text({axes.x.to, 46}, "AdamW, dashed", {Tone::second, Anchor::end});
  figure.text({axes.x.to, 66}, "Muon", {Tone::first, Anchor::end});
  return figure.svg();
}

}  // namespace t2t
