// Drafts and what becomes of them: a text that repeats itself, and what drafts bring. For main.cpp.
#pragma once

namespace t2t {

/// A text whose beginning drafts its end, step by step.
void show_drafts();

/// How many times as fast a text goes on, by the share of drafts that are accepted.
void show_speedup();

}  // namespace t2t
