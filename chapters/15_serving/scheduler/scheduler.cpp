#include "15_serving/scheduler/scheduler.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <stdexcept>

#include "shapes.hpp"

namespace t2t {

/// A text in the making of a plan: how much it reads, and how many new pages that takes.
struct Candidate {
  ScheduledText text;
  std::size_t tokens = 0, new_pages = 0;

  std::size_t left() const { return text.known - text.computed; }
};

/// The state of a plan that is being made.
struct Planner {
  StepLimits limits;
  std::size_t free, budget;
  std::vector<Candidate> running;  // the oldest first
  StepPlan plan = {};

  /// How many new pages a text needs to have read so many tokens more.
  std::size_t pages_for(const ScheduledText& text, std::size_t tokens) const {
    const std::size_t all = (text.computed + tokens + limits.page - 1) / limits.page;
    return all > text.pages ? all - text.pages : 0;
  }
  /// How many tokens a text can read with the pages that it has and the free ones.
  std::size_t tokens_with_pages(const ScheduledText& text) const {
    return (text.pages + free) * limits.page - text.computed;
  }
  void read(Candidate& c, std::size_t tokens) {
    c.tokens = tokens, c.new_pages = pages_for(c.text, tokens);
    budget -= tokens, free -= c.new_pages;
  }
  /// Stops the youngest text, and takes back what it was to do in this step.
  void stop_youngest() {
    const Candidate& c = running.back();
    budget += c.tokens, free += c.new_pages + c.text.freed;
    plan.stopped.push_back(c.text.id);
    running.pop_back();
  }
};

static void expect_limits(const StepLimits& limits) {
  expect(limits.texts >= 1, "texts of a step", "at least 1", 0);
  expect(limits.page >= 1, "tokens of a page", "at least 1", 0);
  expect(limits.budget >= limits.texts, "budget, the tokens of a step",
         fmt::format("at least the {} texts", limits.texts), limits.budget);
}

/// The texts, the oldest first. Refuses those that could not be planned.
static std::vector<Candidate> by_arrival(std::span<const ScheduledText> texts,
                                         const StepLimits& limits) {
  std::vector<Candidate> sorted;
  for (const ScheduledText& text : texts) {
    if (text.computed >= text.known)
      throw std::invalid_argument(fmt::format("text {}: wanted a token to read, got {} of {} read",
                                              text.id, text.computed, text.known));
    if (text.pages * limits.page < text.computed)
      throw std::invalid_argument(
          fmt::format("text {}: wanted pages for {} computed tokens, got {} pages of {}", text.id,
                      text.computed, text.pages, limits.page));
    sorted.push_back({text});
  }
  std::ranges::sort(sorted, {}, [](const Candidate& c) { return c.text.arrival; });
  return sorted;
}

/// Each answer reads a token. If it lacks a page, younger texts are stopped, the youngest first; if
/// none is left, text i itself is stopped, unless it is the oldest.
static void plan_answers(Planner& planner) {
  std::vector<Candidate>& running = planner.running;
  for (std::size_t i = 0; i < running.size(); ++i) {
    if (running[i].left() != 1) continue;
    while (planner.pages_for(running[i].text, 1) > planner.free && running.size() > i + 1)
      planner.stop_youngest();
    if (planner.pages_for(running[i].text, 1) <= planner.free)
      planner.read(running[i], 1);
    else if (i > 0)
      planner.stop_youngest();
  }
}

/// Prompts are read as far as budget and pages allow. Only for the oldest are others stopped.
static void plan_prompts(Planner& planner) {
  std::vector<Candidate>& running = planner.running;
  for (std::size_t i = 0; i < running.size(); ++i) {
    if (running[i].left() == 1) continue;
    while (i == 0 && planner.tokens_with_pages(running[i].text) == 0 && running.size() > 1)
      planner.stop_youngest();
    const std::size_t tokens =
        std::min({running[i].left(), planner.budget, planner.tokens_with_pages(running[i].text)});
    if (tokens > 0) planner.read(running[i], tokens);
  }
}

/// Admits waiting texts, the oldest first. None overtakes an older one.
static void admit(std::vector<Candidate> waiting, Planner& planner) {
  if (!planner.plan.stopped.empty()) return;
  for (Candidate& c : waiting) {
    if (planner.running.size() == planner.limits.texts || planner.budget == 0) return;
    if (c.text.taken + planner.pages_for(c.text, c.left()) > planner.free) return;
    planner.free -= c.text.taken;
    planner.read(c, std::min(c.left(), planner.budget));
    planner.plan.admitted.push_back(c.text.id);
    planner.running.push_back(c);
  }
}

StepPlan plan_step(std::span<const ScheduledText> running, std::span<const ScheduledText> waiting,
                   std::size_t free, const StepLimits& limits) {
  expect_limits(limits);
  expect(running.size() <= limits.texts, "texts that run", fmt::format("at most {}", limits.texts),
         running.size());
  Planner planner{limits, free, limits.budget, by_arrival(running, limits)};
  plan_answers(planner);
  plan_prompts(planner);
  admit(by_arrival(waiting, limits), planner);
  for (const Candidate& c : planner.running)
    if (c.tokens > 0) planner.plan.parts.push_back({c.text.id, c.tokens});
  return planner.plan;
}

}  // namespace t2t
