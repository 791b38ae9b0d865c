#include "15_serving/shows/figure.hpp"

#include <fmt/format.h>

#include <vector>

#include "15_serving/shows/show_pages.hpp"
#include "figure/figure.hpp"

namespace t2t {

/// Who uses a page after a step: "0", "0 1" for two sequences, "cached" if the tree alone does, and
/// nobody.
static std::vector<std::string> users_of_pages(const Engine& engine) {
  std::vector<std::string> users(engine.pool().pages());
  for (const Sequence& running : engine.running())
    for (const std::size_t page : running.table)
      users[page] += fmt::format("{}{}", users[page].empty() ? "" : " ", running.id);
  for (std::size_t page = 0; page < users.size(); ++page)
    if (users[page].empty() && engine.pool().references(page) > 0) users[page] = "cached";
  return users;
}

/// One page's user over some steps.
static void draw_use(Figure& figure, const Box& box, const std::string& user) {
  static constexpr Tone tones[] = {Tone::first, Tone::second, Tone::third};
  if (user.empty()) return;
  const bool cached = user == "cached", shared = user.size() > 1;
  if (cached)
    figure.frame({box.x + 1, box.y + 1, box.width - 2, box.height - 2}, {.dashed = true});
  else
    figure.box(box, shared ? Tone::quiet : tones[user[0] - '0'], shared ? 1 : 0.85);
  const bool fits = box.width > 7.0 * double(user.size()) + 2;
  if (fits) figure.label(box, user, {.tone = cached ? Tone::quiet : Tone::paper, .size = 12});
}

std::string figure_of_pages() {
  std::vector<std::vector<std::string>> steps;  // [steps][pages]
  run_three_sequences([&](std::size_t, const Engine& engine, const std::vector<Event>&) {
    steps.push_back(users_of_pages(engine));
  });
  const std::size_t pages = steps[0].size();
  constexpr double left = 62, top = 46, wide = 25, high = 22;
  const double right = left + wide * double(steps.size()), bottom = top + high * double(pages);
  Figure figure(right + 16, bottom + 84, "Twelve pages while three sequences come and go",
                "Each row is a page, and each column a step. Sequences 0, 1 and 2 share the pages "
                "of their common prefix, and each takes others for its own tokens. Full pages of a "
                "sequence that has ended or was preempted stay cached until others need them.");
  figure.text({left - 8, 34}, "step", {Tone::quiet, Anchor::end, 13});
  for (std::size_t step = 0; step < steps.size(); ++step)
    figure.text({left + wide * (double(step) + 0.5), 34}, fmt::format("{}", step),
                {Tone::quiet, Anchor::middle, 12});
  for (std::size_t page = 0; page < pages; ++page) {
    const double y = top + high * double(page);
    figure.text({left - 8, y + 16}, fmt::format("page {}", page), {Tone::quiet, Anchor::end, 13});
    for (std::size_t from = 0, end = 0; from < steps.size(); from = end) {
      while (end < steps.size() && steps[end][page] == steps[from][page]) ++end;
      draw_use(figure, {left + wide * double(from), y, wide * double(end - from) - 1, high - 2},
               steps[from][page]);
    }
  }
  figure.frame({left - 1, top - 1, right - left + 1, bottom - top}, {.width = 0.5});
  figure.text({8, bottom + 26}, "0, 1, 2: one running sequence has the page in its table",
              {.size = 13});
  figure.text({8, bottom + 46}, "several numbers: the sequences share the page", {.size = 13});
  figure.text({8, bottom + 66}, "dashed: cached for later sequences; empty: free", {.size = 13});
  return figure.svg();
}

}  // namespace t2t
