#include "program/stop_asked.hpp"

namespace t2t {

static volatile std::sig_atomic_t noted = 0;

static void note(int signal) {
  noted = 1;
  std::signal(signal, SIG_DFL);
}

StopAsked::StopAsked(std::initializer_list<int> signals) {
  noted = 0;
  for (const int signal : signals) before_.emplace_back(signal, std::signal(signal, note));
}
StopAsked::~StopAsked() {
  for (const auto& [signal, handler] : before_) std::signal(signal, handler);
}
bool StopAsked::asked() { return noted != 0; }

}  // namespace t2t
