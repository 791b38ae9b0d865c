#include "10_pretrained/program/default_model.hpp"

#include <cstdlib>

namespace t2t {

std::string default_model() {
  const char* path = std::getenv("T2T_WEIGHTS");
  return path ? path : T2T_WEIGHTS;
}

}  // namespace t2t
