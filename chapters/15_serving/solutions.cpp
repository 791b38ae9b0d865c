// The solutions to the problems on paper of docs/15_serving.md.
#include "program/solutions.hpp"

#include <fmt/format.h>

#include <string>

#include "15_serving/scheduler/scheduler.hpp"
#include "program/print.hpp"

namespace t2t {

static Solution bytes_of_pages() {
  const std::size_t a_token = 2 * 32 * 8 * 128 * 2, page = 16 * a_token, pages = 2900 / 16 + 1;
  return {"pages of a sequence",
          fmt::format(
              "A token has 2·32·8·128 = {} elements, {} bytes, so a page has {} bytes. 2,900 "
              "tokens need ⌈2,900 / 16⌉ = {} pages, {} bytes, of which {} positions are unused.",
              with_commas(a_token / 2), with_commas(a_token), with_commas(page), pages,
              with_commas(pages * page), pages * 16 - 2900)};
}

static Solution a_plan() {
  const ScheduledSequence running[] = {
      {.id = 0, .arrival = 0, .known = 21, .computed = 20, .pages = 5, .freed = 5},
      {.id = 1, .arrival = 1, .known = 9, .computed = 8, .pages = 2, .freed = 2},
      {.id = 2, .arrival = 2, .known = 30, .computed = 4, .pages = 1, .freed = 1}};
  const StepPlan plan = plan_step(running, {}, 1, {.budget = 8, .sequences = 3, .page_size = 4});
  std::string ids;  // of the sequences that read, each one token
  for (const StepPlan::Part& part : plan.parts)
    ids += fmt::format("{}{}", ids.empty() ? "" : " and ", part.id);
  return {
      "a step",
      fmt::format("Sequences 0 and 1 have full pages, so each needs a new one for its token. "
                  "Sequence 0 takes the free page. For sequence 1, sequence {} is preempted and "
                  "gives its page back. Then sequences {} read one token each.",
                  plan.preempted.at(0), ids)};
}

static Solution common_prefix() {
  const std::size_t sequences = 40, common = 1000 / 16, each = (1000 + 200 + 15) / 16;
  return {
      "a common prefix",
      fmt::format(
          "Of the 1,000 tokens ⌊1,000 / 16⌋ = {} whole pages can be shared. Each sequence "
          "needs {} pages for its 1,200 tokens, so alone {} sequences need {}. Together they need "
          "{} + {}·{} = {}.",
          common, each, sequences, with_commas(sequences * each), common, sequences, each - common,
          common + sequences * (each - common))};
}

std::vector<Solution> solutions() { return {bytes_of_pages(), a_plan(), common_prefix()}; }

}  // namespace t2t
