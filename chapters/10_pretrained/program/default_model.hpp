// The path of the real model's file: T2T_WEIGHTS from the environment, or else where ./learn
// weights puts it, which CMakeLists.txt defines.
#pragma once

#include <cstdlib>
#include <string>

namespace t2t {

inline std::string default_model() {
  const char* path = std::getenv("T2T_WEIGHTS");
  return path ? path : T2T_WEIGHTS;
}

}  // namespace t2t
