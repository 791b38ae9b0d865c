// Shows what a cache holds, how a session uses it, and what it refuses. For this chapter's program.
#pragma once

#include <vector>

#include "05_kv_cache/babbler/babbler.hpp"

namespace t2t {

void show_storage(const std::vector<int>& ids, const KvCache& cache);

/// How a session uses the cache: a prompt, an answer, an edit of the prompt, a new text.
void show_session(Babbler& babbler, const std::vector<int>& ids, std::size_t S);

void show_refusals();

}  // namespace t2t
