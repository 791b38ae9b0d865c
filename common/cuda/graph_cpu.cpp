// A graph on the stand-in: a list of launches, each with a copy of its arguments.
#include <vector>

#include "cuda/graph.hpp"
#include "cuda_on_cpu/launch.hpp"

namespace t2t {

using Launches = std::vector<std::function<void()>>;

Graph::Graph(const std::function<void()>& work) : recorded_(new Launches) {
  struct Recording {
    explicit Recording(Launches* to) { stand_in::recorded_launches() = to; }
    ~Recording() { stand_in::recorded_launches() = nullptr; }
  };
  try {
    const Recording recording(static_cast<Launches*>(recorded_));
    work();
  } catch (...) {
    delete static_cast<Launches*>(recorded_);
    throw;
  }
}

Graph::~Graph() { delete static_cast<Launches*>(recorded_); }

void Graph::launch() const {
  for (const auto& launch : *static_cast<const Launches*>(recorded_)) launch();
}

}  // namespace t2t
