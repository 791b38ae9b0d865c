// Where the real model's file lies, for the programs that show it: T2T_WEIGHTS in the environment,
// or where ./learn weights puts it, which CMakeLists.txt tells them.
#pragma once

#include <cstdlib>
#include <string>

namespace t2t {

inline std::string default_model() {
  const char* path = std::getenv("T2T_WEIGHTS");
  return path ? path : T2T_WEIGHTS;
}

}  // namespace t2t
