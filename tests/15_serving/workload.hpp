// Workloads: sequences of requests that can be made again, run on a clock that counts steps.
//
// A workload says at which step which sequence comes, and which of them are cancelled. After every
// step the run checks what must hold whatever the workload is, the invariants:
//
//   each page is free, or has as many references as there are tables and places in the tree that
//     name it
//   a running sequence has just as many pages as its computed tokens need, and no page twice
//   a waiting sequence has no pages, and copies of just as many as its computed tokens need
//   there are no more copies than the options allow
//   no more sequences run than the options allow, and each has an index of its own
//   a step reads no more tokens than its budget, drafts included
//   the oldest sequence advances in this step or the next
//   a sequence that ends and was not cancelled has the answer that it has alone, without drafts
//
// If a workload breaks one of them, smaller workloads are tried that break it, too.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "15_serving/shows/arrivals.hpp"
#include "random.hpp"

namespace t2t {

struct Workload {
  EngineOptions options;
  std::vector<Arrival> arrivals;
};

/// A random workload: one to twelve sequences, some with a common prefix and some with a
/// toy_drafter, in memory that is sometimes scarce.
Workload random_workload(Random& random, std::size_t V);

/// Makes a runner for these options.
using MakeRunner = std::function<ModelRunner(const EngineOptions& options)>;

/// What a sequence says, and how it ends, when no other is there and nothing is drafted.
struct WorkloadText {
  std::vector<int> said = {};
  std::optional<Ending> ending = {};
};
WorkloadText alone(Request request, const EngineOptions& options, const MakeRunner& make);

/// Runs a workload to its end. Returns the first invariant that is broken, with the step and the
/// numbers, or an empty sequence.
std::string run_workload(const Workload& workload, const MakeRunner& make,
                         const AfterStep& after = {});

/// A smaller workload for which `fails` still holds: sequences are left out, and made shorter, as
/// long as it does. The workload itself must fail.
Workload shrunk(Workload workload, const std::function<bool(const Workload&)>& fails);

/// All pages in one line, a character for each: '.' is free, a digit or letter is the sequence that
/// has it, '+' means several sequences, and '-' is a page that only the tree of prefixes has.
std::string picture_of(const Engine& engine);

}  // namespace t2t
