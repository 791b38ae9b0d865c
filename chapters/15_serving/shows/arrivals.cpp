#include "15_serving/shows/arrivals.hpp"

#include <string_view>

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

std::string picture_of(const Engine& engine) {
  constexpr std::string_view names = "0123456789abcdefghijklmnopqrstuvwxyz";
  std::string picture(engine.pool().pages(), '.');
  for (const std::size_t page : engine.tree().pages()) picture[page] = '-';
  for (const Sequence& text : engine.running())
    for (const std::size_t page : text.table) {
      char& mark = picture[page];
      mark = mark == '.' || mark == '-' ? names[text.id % names.size()] : '+';
    }
  return picture;
}

}  // namespace t2t
