// What must be true of the scheduler: plans by hand.
#include "15_serving/scheduler/scheduler.hpp"

#include <doctest/doctest.h>

#include <ostream>
#include <vector>

#include "support/lists.hpp"
#include "support/refuses.hpp"

namespace t2t {
static std::ostream& operator<<(std::ostream& out, const StepPlan::Part& part) {
  return out << "text " << part.id << ": " << part.tokens;
}
}  // namespace t2t

namespace t2t::scheduler_test {

using std::size_t;
using Numbers = std::vector<size_t>;
using Parts = std::vector<StepPlan::Part>;
using Sequences = std::vector<ScheduledSequence>;

/// A sequence that is as old as its number, running or waiting, with the pages that its computed
/// tokens need, of four tokens each; no other sequence has one of them.
static ScheduledSequence sequence(size_t id, size_t known, size_t computed = 0) {
  const size_t pages = (computed + 3) / 4;
  return {id, id, known, computed, pages, pages, pages};
}
static StepPlan plan(const Sequences& running, const Sequences& waiting, size_t free,
                     StepLimits limits = {.budget = 10, .sequences = 3, .page_size = 4}) {
  return plan_step(running, waiting, free, limits);
}

TEST_CASE("by hand: answers go on by a token each, and a prompt gets what is left of the budget") {
  const StepPlan got = plan({sequence(2, 30, 4), sequence(1, 9, 8), sequence(0, 6, 5)}, {}, 9);
  CHECK(got.parts == Parts{{0, 1}, {1, 1}, {2, 8}});
  CHECK(got.preempted.empty());
  CHECK(got.admitted.empty());
}

TEST_CASE("by hand: waiting texts come in by age, while there are places, budget and pages") {
  CHECK(plan({}, {sequence(7, 3), sequence(5, 6)}, 9).parts == Parts{{5, 6}, {7, 3}});
  CHECK(plan({}, {sequence(7, 3), sequence(5, 6)}, 9).admitted == Numbers{5, 7});
  // 5 takes the whole budget with its first chunk.
  CHECK(plan({}, {sequence(7, 3), sequence(5, 12)}, 9).parts == Parts{{5, 10}});
  // No place is free.
  CHECK(plan({sequence(1, 2, 1), sequence(2, 2, 1), sequence(3, 2, 1)}, {sequence(5, 1)}, 9)
            .admitted.empty());
  // 5 needs two pages for all of its tokens and there is one: 7 may not overtake it.
  CHECK(plan({sequence(1, 2, 1)}, {sequence(5, 6), sequence(7, 3)}, 1).admitted.empty());
  CHECK(plan({sequence(1, 2, 1)}, {sequence(5, 6), sequence(7, 3)}, 2).admitted == Numbers{5});
}

TEST_CASE(
    "by hand: what a waiting text finds in old pages it need not read, and these are not free") {
  ScheduledSequence found = sequence(5, 10, 8);  // two pages of the tree, which nobody uses
  CHECK(plan({}, {found}, 3).parts == Parts{{5, 2}});
  CHECK(plan({}, {found}, 2).admitted.empty());  // the two pages themselves, and none for the rest
  found.claimed = 0;                             // others use them
  CHECK(plan({}, {found}, 1).parts == Parts{{5, 2}});
}

TEST_CASE("by hand: when an answer needs a page, the youngest text stops; never the oldest") {
  // 1 has filled its page. 3, the youngest, has two pages, of which 1 takes one.
  const StepPlan got =
      plan({sequence(1, 5, 4), sequence(2, 7, 6), sequence(3, 9, 8)}, {sequence(4, 1)}, 0);
  CHECK(got.preempted == Numbers{3});
  CHECK(got.parts == Parts{{1, 1}, {2, 1}});
  CHECK(got.admitted.empty());  // no sequence comes in while another had to stop
  // The youngest is the one that needs a page: it stops itself.
  CHECK(plan({sequence(1, 7, 6), sequence(2, 5, 4)}, {}, 0).preempted == Numbers{2});
  // Alone, it waits for a page.
  CHECK(plan({sequence(1, 5, 4)}, {}, 0).preempted.empty());
  CHECK(plan({sequence(1, 5, 4)}, {}, 0).parts.empty());
}

TEST_CASE("by hand: a prompt makes do with the free pages; for the oldest text others stop") {
  // 1 can read two tokens more in its own page, and four in the free one.
  CHECK(plan({sequence(0, 2, 1), sequence(1, 20, 2)}, {}, 1).parts == Parts{{0, 1}, {1, 6}});
  CHECK(plan({sequence(0, 2, 1), sequence(1, 20, 4)}, {}, 0).parts == Parts{{0, 1}});
  const StepPlan got = plan({sequence(0, 20, 4), sequence(1, 6, 5), sequence(2, 2, 1)}, {}, 0);
  CHECK(got.preempted == Numbers{2});
  CHECK(got.parts == Parts{{0, 4}, {1, 1}});
  // 1 has taken the free page for its answer. It stops, and gives that page and its token back.
  const StepPlan other = plan({sequence(0, 20, 4), sequence(1, 5, 4)}, {}, 1, {8, 3, 4});
  CHECK(other.preempted == Numbers{1});
  CHECK(other.parts == Parts{{0, 8}});
}

TEST_CASE("a page that another text uses, too, is not free when a text stops") {
  ScheduledSequence young = sequence(2, 9, 8);
  young.freed = 0;
  const StepPlan got = plan({sequence(1, 5, 4), young}, {}, 0);
  CHECK(got.preempted == Numbers{2});
  CHECK(got.parts.empty());  // the next step sees what is free
}

TEST_CASE("a plan needs limits that let each text read a token, and texts that have one to read") {
  REFUSES(plan({}, {}, 1, {.budget = 10, .sequences = 0, .page_size = 4}),
          "sequences of a step: wanted at least 1, got 0");
  REFUSES(plan({}, {}, 1, {.budget = 10, .sequences = 1, .page_size = 0}),
          "tokens of a page: wanted at least 1, got 0");
  REFUSES(plan({}, {}, 1, {.budget = 2, .sequences = 3, .page_size = 4}),
          "budget, the tokens of a step: wanted at least the 3 sequences, got 2");
  REFUSES(plan({sequence(4, 5, 5)}, {}, 1), "sequence 4: wanted a token to read, got 5 of 5 read");
  REFUSES(plan({sequence(0, 2), sequence(1, 2), sequence(2, 2), sequence(3, 2)}, {}, 1),
          "sequences that run: wanted at most 3, got 4");
  ScheduledSequence short_of_pages = sequence(4, 9, 8);
  short_of_pages.pages = 1;
  REFUSES(plan({short_of_pages}, {}, 1),
          "sequence 4: wanted pages for 8 computed tokens, got 1 page(s) of 4 tokens each");
}

}  // namespace t2t::scheduler_test
