// Sequences for tests of the engine.
#pragma once

#include <cstddef>

#include "15_serving/engine/engine.hpp"

namespace t2t {

/// Some sequences: a third of them begin alike, half of them are drawn by chance. Ids are below 96.
inline Request some_request(std::size_t i) {
  Request request;
  if (i % 3 == 0)
    for (int t = 0; t < 37; ++t) request.prompt.push_back(t * 5 % 96);
  for (std::size_t t = 0; t < 1 + i * 7 % 40; ++t)
    request.prompt.push_back(int((i * 13 + t * t) % 96));
  request.max_new_tokens = 1 + i * 5 % 12;
  request.sampling.temperature = i % 2 == 0 ? 0 : 0.8f;
  request.seed = i;
  return request;
}

}  // namespace t2t
