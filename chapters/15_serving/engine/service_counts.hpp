// A service's counts, for monitoring.
#pragma once

#include <cstddef>

namespace t2t {

/// What a service has done since it started, and its present state.
struct ServiceCounts {
  std::size_t sequences = 0, ended = 0, cancelled = 0, failed = 0, refused = 0, preemptions = 0;
  std::size_t steps = 0, prompt_tokens = 0, tokens_read = 0, tokens_generated = 0;
  std::size_t running = 0, waiting = 0, pages = 0, pages_free = 0, pages_cached = 0;
  std::size_t unfinished = 0;  // sequences that were requested and have not ended
};

}  // namespace t2t
