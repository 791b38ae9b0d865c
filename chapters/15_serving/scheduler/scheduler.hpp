// The scheduler: which sequences advance in the next step, and by how many tokens.
//
// A server computes in steps. In one step the model reads some tokens of several sequences at once,
// up to a budget: the last token of each sequence that is decoding, and as many prompt tokens as
// still fit. Sequences join and leave between two steps ("continuous batching", Yu et al. 2022,
// "Orca"), and a long prompt is read in chunks, so that it does not hold up all others (Agrawal et
// al. 2023, "SARATHI").
//
// A sequence runs from the step that admits it until it ends or is preempted; otherwise it waits. A
// plan is made in three rounds, each from the oldest sequence to the youngest:
//
//   1  Decode: each running sequence with one token left to read reads it.
//   2  Prefill: each running sequence with more left reads a chunk: as many tokens as are left in
//      the budget and fit into its own pages and the free ones. That can be 0 tokens.
//   3  Admission: waiting sequences are admitted, and read as many tokens as the budget allows,
//      while fewer than `sequences` run and budget is left. A sequence needs free pages for all its
//      unread tokens, not only for its chunk. The first sequence that can't be admitted ends the
//      round: no younger one overtakes it.
//
// If a decoding sequence needs a page when none is free, the youngest running sequence is
// preempted, again and again until a page is free. It may be the sequence that needs the page
// itself, unless it is the oldest: the oldest is never preempted, and goes without a token in this
// step if there is no page. In round 2 sequences are preempted in the same way, but only for the
// oldest sequence, and only while it could not read a single token. If a sequence is preempted,
// none is admitted in the same step.
//
// A preempted sequence gives its pages back and waits. The tokens that it was to read in this step
// return to the budget. The new pages for those tokens are free again, and so are its `freed`
// pages. Later the sequence reads its tokens again, except for those that it finds in cached
// pages or in the copies of its swapped pages.
//
// The oldest sequence therefore advances at least in every second step, and ends eventually; then
// another is the oldest, so no sequence waits forever. Only a sequence that needs more pages than
// there are would wait forever; it must be refused beforehand.
//
// plan_step is a function of its arguments alone. It knows nothing of time, sockets, tokens or the
// contents of pages, so every series of steps can be repeated and checked.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace t2t {

/// What the scheduler knows about a sequence.
struct ScheduledSequence {
  std::size_t id;
  std::size_t arrival;    // the smaller, the older; no two sequences have the same
  std::size_t known;      // its tokens: the prompt, and the answer so far
  std::size_t computed;   // how many of these have keys and values, in pages or swap space
  std::size_t pages;      // pages in its table, at least enough for the computed tokens
  std::size_t freed = 0;  // pages that a running sequence's preemption makes available
  /// Available pages that a waiting sequence's admission would use for its computed tokens: pages
  /// to share, and pages for copies.
  std::size_t claimed = 0;
};

struct StepLimits {
  std::size_t budget;     // at most so many tokens in a step
  std::size_t sequences;  // at most so many sequences run at the same time
  std::size_t page_size;  // tokens of a page
};

/// What to do in a step, in this order: preempt sequences, admit others, and read tokens.
struct StepPlan {
  struct Part {
    std::size_t id, tokens;
    bool operator==(const Part&) const = default;
  };
  std::vector<std::size_t> preempted;  // running sequences that give up their pages, youngest first
  std::vector<std::size_t> admitted;   // waiting sequences that now run, the oldest first
  std::vector<Part> parts;  // sequences that read, by age; at most `budget` tokens together
};

/// The plan, by the rules at the top of this file. `running`, at most `sequences` of them, and
/// `waiting` come in any order. A waiting sequence has no pages yet: its `computed` and `pages` say
/// what it will have as soon as it is admitted, in shared pages and in pages copied for it. `free`
/// is how many pages are free or can be evicted. The `claimed` pages of a waiting sequence still
/// count in `free`. It is admitted if `claimed` plus the new pages for all its tokens is at most
/// `free`; then `claimed` plus the new pages for its chunk are subtracted. Throws
/// std::invalid_argument unless the limits are at least 1, the budget is at least `sequences`, at
/// most `sequences` sequences run, and each sequence has a token to read and pages for its computed
/// tokens.
StepPlan plan_step(std::span<const ScheduledSequence> running,
                   std::span<const ScheduledSequence> waiting, std::size_t free,
                   const StepLimits& limits);

}  // namespace t2t
