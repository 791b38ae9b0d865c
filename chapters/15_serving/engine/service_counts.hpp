// Counts of a service, for whoever watches it.
#pragma once

#include <cstddef>

namespace t2t {

/// What a service has done since it began, and what it has now.
struct ServiceCounts {
  std::size_t sequences = 0, ended = 0, cancelled = 0, failed = 0, refused = 0, preemptions = 0;
  std::size_t steps = 0, prompt_tokens = 0, tokens_read = 0, tokens_said = 0;
  std::size_t running = 0, waiting = 0, pages = 0, pages_free = 0, pages_cached = 0;
  std::size_t unfinished = 0;  // sequences that have been asked for, and have not ended
};

}  // namespace t2t
