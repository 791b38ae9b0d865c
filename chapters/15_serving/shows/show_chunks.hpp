// What a long prompt does to the answers beside it. For main.cpp.
#pragma once

namespace t2t {

/// Eight answers and a prompt of 1,500 tokens, on a virtual clock, for several budgets.
void show_chunks();

}  // namespace t2t
