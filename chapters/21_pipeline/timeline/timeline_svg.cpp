#include "21_pipeline/timeline/timeline_svg.hpp"

#include <fmt/format.h>

#include "figure/figure.hpp"

namespace t2t {

static constexpr double left = 70, width = 660, high = 28;

static void draw_box(Figure& figure, const Box& box, const Operation& operation) {
  const bool forward = operation.pass == Operation::Pass::forward;
  figure.box(box, forward ? Tone::first : Tone::second);
  if (box.width >= 12)
    figure.label(box, fmt::format("{}", operation.part), {.tone = Tone::paper, .size = 12});
}

std::string svg_of(const Timeline& timeline) {
  const double start = first_begin(timeline), scale = width / length_of(timeline);
  const double bottom = 5 + high * double(timeline.size());
  Figure figure(left + width + 10, bottom + 30,
                fmt::format("{} stages of a pipeline in time", timeline.size()),
                fmt::format("A row per stage, time to the right. Each box is the forward or the "
                            "backward pass of a micro-batch, with its number; the stages are idle "
                            "for {:.1f} % of the time.",
                            100 * idle_share(timeline)));
  for (std::size_t s = 0; s < timeline.size(); ++s) {
    const double top = 5 + high * double(s);
    figure.text({8, top + 19}, fmt::format("stage {}", s), {.tone = Tone::quiet, .size = 13});
    for (const Played& one : timeline[s])
      draw_box(
          figure,
          {left + (one.begin - start) * scale, top + 2, (one.end - one.begin) * scale, high - 4},
          one.operation);
  }
  figure.text({left, bottom + 20}, "blue: forward", {.tone = Tone::first, .size = 13});
  figure.text({left + 110, bottom + 20}, "orange: backward", {.tone = Tone::second, .size = 13});
  return figure.svg();
}

}  // namespace t2t
