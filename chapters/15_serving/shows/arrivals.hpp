// Requests that reach an engine one after another, on a clock that counts steps.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "15_serving/engine/engine.hpp"

namespace t2t {

struct Arrival {
  std::size_t step;  // at whose beginning it arrives
  Request request;
  std::optional<std::size_t> cancelled = {};  // the step at whose beginning it is cancelled
};

/// Learns after each step what happened.
using AfterStep =
    std::function<void(std::size_t step, const Engine& engine, const std::vector<Event>& events)>;

/// Submits each request at its step, and runs the engine until all have ended. Ignores `cancelled`.
void run_arrivals(Engine engine, const std::vector<Arrival>& arrivals, const AfterStep& after);

}  // namespace t2t
