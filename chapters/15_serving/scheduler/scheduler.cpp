#include "15_serving/scheduler/scheduler.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <stdexcept>

#include "shapes.hpp"

namespace t2t {

/// A sequence during planning: how much it reads, and how many new pages that takes.
struct Candidate {
  ScheduledSequence sequence;
  std::size_t tokens = 0, new_pages = 0;

  std::size_t left() const { return sequence.known - sequence.computed; }
};

/// An unfinished plan's state.
struct Planner {
  StepLimits limits;
  std::size_t free, budget;
  std::vector<Candidate> running;  // the oldest first
  StepPlan plan = {};

  /// How many new pages a sequence needs for `tokens` more tokens.
  std::size_t pages_for(const ScheduledSequence& sequence, std::size_t tokens) const {
    const std::size_t all = (sequence.computed + tokens + limits.page_size - 1) / limits.page_size;
    return all > sequence.pages ? all - sequence.pages : 0;
  }
  /// How many tokens a sequence can read with its own pages and the free ones.
  std::size_t tokens_with_pages(const ScheduledSequence& sequence) const {
    return (sequence.pages + free) * limits.page_size - sequence.computed;
  }
  void read(Candidate& c, std::size_t tokens) {
    c.tokens = tokens, c.new_pages = pages_for(c.sequence, tokens);
    budget -= tokens, free -= c.new_pages;
  }
  /// Preempts the youngest sequence, and takes back what it was to do in this step.
  void preempt_youngest() {
    const Candidate& c = running.back();
    budget += c.tokens, free += c.new_pages + c.sequence.freed;
    plan.preempted.push_back(c.sequence.id);
    running.pop_back();
  }
};

static void expect_limits(const StepLimits& limits) {
  expect(limits.sequences >= 1, "sequences of a step", "at least 1", 0);
  expect(limits.page_size >= 1, "tokens of a page", "at least 1", 0);
  expect(limits.budget >= limits.sequences, "budget, the tokens of a step",
         fmt::format("at least the {} sequences", limits.sequences), limits.budget);
}

/// The sequences, the oldest first. Refuses those that could not be planned.
static std::vector<Candidate> by_arrival(std::span<const ScheduledSequence> sequences,
                                         const StepLimits& limits) {
  std::vector<Candidate> sorted;
  for (const ScheduledSequence& sequence : sequences) {
    if (sequence.computed >= sequence.known)
      throw std::invalid_argument(
          fmt::format("sequence {}: wanted a token to read, got {} of {} read", sequence.id,
                      sequence.computed, sequence.known));
    if (sequence.pages * limits.page_size < sequence.computed)
      throw std::invalid_argument(fmt::format(
          "sequence {}: wanted pages for {} computed tokens, got {} page(s) of {} tokens each",
          sequence.id, sequence.computed, sequence.pages, limits.page_size));
    sorted.push_back({sequence});
  }
  std::ranges::sort(sorted, {}, [](const Candidate& c) { return c.sequence.arrival; });
  return sorted;
}

/// Each answer reads a token. If it lacks a page, younger sequences are preempted, the youngest
/// first; if none is left, sequence i itself is preempted, unless it is the oldest.
static void plan_decode(Planner& planner) {
  std::vector<Candidate>& running = planner.running;
  for (std::size_t i = 0; i < running.size(); ++i) {
    if (running[i].left() != 1) continue;
    while (planner.pages_for(running[i].sequence, 1) > planner.free && running.size() > i + 1)
      planner.preempt_youngest();
    if (planner.pages_for(running[i].sequence, 1) <= planner.free)
      planner.read(running[i], 1);
    else if (i > 0)
      planner.preempt_youngest();
  }
}

/// Prompts are read as far as budget and pages allow. Only for the oldest are others preempted.
static void plan_prefill(Planner& planner) {
  std::vector<Candidate>& running = planner.running;
  for (std::size_t i = 0; i < running.size(); ++i) {
    if (running[i].left() == 1) continue;
    while (i == 0 && planner.tokens_with_pages(running[i].sequence) == 0 && running.size() > 1)
      planner.preempt_youngest();
    const std::size_t tokens = std::min(
        {running[i].left(), planner.budget, planner.tokens_with_pages(running[i].sequence)});
    if (tokens > 0) planner.read(running[i], tokens);
  }
}

/// Admits waiting sequences, the oldest first. None overtakes an older one.
static void admit(std::vector<Candidate> waiting, Planner& planner) {
  if (!planner.plan.preempted.empty()) return;
  for (Candidate& c : waiting) {
    if (planner.running.size() == planner.limits.sequences || planner.budget == 0) return;
    if (c.sequence.claimed + planner.pages_for(c.sequence, c.left()) > planner.free) return;
    planner.free -= c.sequence.claimed;
    planner.read(c, std::min(c.left(), planner.budget));
    planner.plan.admitted.push_back(c.sequence.id);
    planner.running.push_back(c);
  }
}

StepPlan plan_step(std::span<const ScheduledSequence> running,
                   std::span<const ScheduledSequence> waiting, std::size_t free,
                   const StepLimits& limits) {
  expect_limits(limits);
  expect(running.size() <= limits.sequences, "sequences that run",
         fmt::format("at most {}", limits.sequences), running.size());
  Planner planner{limits, free, limits.budget, by_arrival(running, limits)};
  plan_decode(planner);
  plan_prefill(planner);
  admit(by_arrival(waiting, limits), planner);
  for (const Candidate& c : planner.running)
    if (c.tokens > 0) planner.plan.parts.push_back({c.sequence.id, c.tokens});
  return planner.plan;
}

}  // namespace t2t
