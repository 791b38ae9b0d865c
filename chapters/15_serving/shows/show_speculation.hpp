// Drafts and what becomes of them: a sequence that repeats itself, and the speedup. For main.cpp.
#pragma once

namespace t2t {

/// A sequence that repeats its beginning, so that drafts are found there.
void show_drafts();

/// How many times as fast a sequence advances, by the acceptance rate.
void show_speedup();

}  // namespace t2t
