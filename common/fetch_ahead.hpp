// Prefetching, for loops that read a lot of memory in order, once.
//
// A processor notices such a loop and fetches the next cache lines by itself, but only to the end
// of a page of 4,096 bytes, since it does not know where in memory the next page lies. There it has
// to notice anew. A loop that asks for what it will read one page later does not wait at each page.
#pragma once

#include <cstddef>

namespace t2t {

/// Prefetches the bytes one page after `from`. They need not exist: nothing is read yet.
inline void fetch_ahead(const void* from, std::size_t bytes) {
  constexpr std::size_t page = 4096, cache_line = 64;
  for (std::size_t line = 0; line < bytes; line += cache_line)
    __builtin_prefetch(static_cast<const char*>(from) + page + line);
}

}  // namespace t2t
