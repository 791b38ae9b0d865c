// Traces: sequences of requests that can be made again, run on a clock that counts steps.
//
// A trace says at which step which text comes, and which of them are cancelled. After every step
// the run checks what must hold whatever the trace is, the invariants:
//
//   each page is free, or has as many users as there are tables and places in the tree that name it
//   a text that runs has just as many pages as its computed tokens need, and no page twice
//   a text that waits has no pages, and copies of just as many as its computed tokens need
//   there are no more copies than the sizes allow
//   the texts that run are not more than there are places, and each has a place of its own
//   a step reads no more tokens than its budget, drafts included
//   the oldest text goes on in this step or the next
//   a text that ends and was not cancelled says what it says alone and without drafts
//
// If a trace breaks one of them, smaller traces are tried that break it, too.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "15_serving/engine/engine.hpp"
#include "random.hpp"

namespace t2t {

/// A text of a trace.
struct Arrival {
  std::size_t step;  // at whose beginning it comes
  Request request;
  std::optional<std::size_t> cancelled;  // the step at whose beginning it is cancelled
};
struct ServingTrace {
  PageSizes sizes;
  std::vector<Arrival> arrivals;
};

/// A random trace: one to twelve texts, some with a common beginning and some with a toy_draft, in
/// memory that is sometimes scarce.
ServingTrace random_trace(Random& random, std::size_t V);

/// Makes a reader for these sizes.
using MakeReader = std::function<PageReader(const PageSizes& sizes)>;
/// Is told after each step what happened.
using AfterStep =
    std::function<void(std::size_t step, const Engine& engine, const std::vector<Event>& events)>;

/// What a text says, and how it ends, when no other is there and nothing is drafted.
struct TraceText {
  std::vector<int> said = {};
  std::optional<Ending> ending = {};
};
TraceText alone(Request request, const PageSizes& sizes, const MakeReader& make);

/// Runs a trace to its end. Returns the first invariant that is broken, with the step and the
/// numbers, or an empty text.
std::string run_trace(const ServingTrace& trace, const MakeReader& make,
                      const AfterStep& after = {});

/// A smaller trace for which `fails` still holds: texts are left out, and made shorter, as long as
/// it does. The trace itself must fail.
ServingTrace shrunk(ServingTrace trace, const std::function<bool(const ServingTrace&)>& fails);

/// All pages in one line, a character for each: '.' is free, a digit or letter is the text that has
/// it, '+' means several texts, and '-' is a page that only the tree of beginnings has.
std::string picture_of(const Engine& engine);

}  // namespace t2t
