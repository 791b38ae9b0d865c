// Ctrl-C, and other requests to end, for work that has a good place to stop at.
#pragma once

#include <csignal>
#include <initializer_list>
#include <utility>
#include <vector>

namespace t2t {

/// While it exists, these signals do not end the program: they are noted, and the work asks for
/// them. A second one ends the program at once.
class StopAsked {
 public:
  explicit StopAsked(std::initializer_list<int> signals);
  StopAsked(const StopAsked&) = delete;
  ~StopAsked();
  static bool asked();

 private:
  std::vector<std::pair<int, void (*)(int)>> before_;  // signals, and who received them
};

}  // namespace t2t
