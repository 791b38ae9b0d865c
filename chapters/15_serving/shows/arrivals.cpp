#include "15_serving/shows/arrivals.hpp"

namespace t2t {

void run_arrivals(Engine engine, const std::vector<Arrival>& arrivals, const AfterStep& after) {
  std::size_t submitted = 0;
  for (std::size_t step = 0; submitted < arrivals.size() || !engine.idle(); ++step) {
    for (const Arrival& arrival : arrivals)
      if (arrival.step == step) engine.submit(arrival.request), ++submitted;
    const std::vector<Event> events = engine.step();
    after(step, engine, events);
  }
}

}  // namespace t2t
