// The solutions to the problems on paper of docs/05_kv_cache.md.
#include "program/solutions.hpp"

#include <fmt/format.h>

#include "05_kv_cache/kv_cache.hpp"
#include "memory.hpp"
#include "program/print.hpp"

namespace t2t {

static Solution cache_of_a_model() {
  const std::size_t L = 36, G = 8, S = 32768, D = 128;
  const std::size_t bytes = kv_cache_bytes(L, G, S, D, 2);
  return {"cache of a model",
          fmt::format("2 · {} · {} · {} · {} · 2 bytes = {} bytes, which is {}.", L, G, S, D,
                      with_commas(bytes), bytes_text(double(bytes)))};
}

static Solution texts_that_fit() {
  const std::size_t room = std::size_t(16) << 30, of_text = kv_cache_bytes(32, 8, 4096, 128, 2);
  return {"texts that fit",
          fmt::format("A text takes 2 · 32 · 8 · 4096 · 128 · 2 bytes = {}, so {} "
                      "texts fit into {}.",
                      bytes_text(double(of_text)), room / of_text, bytes_text(double(room)))};
}

static Solution rows_of_a_short_text() {
  const std::size_t prompt = 6, more = 4;
  std::size_t without = 0;
  for (std::size_t step = 0; step < more; ++step) without += prompt + step;
  return {"rows of a short text",
          fmt::format("Without the cache 6 + 7 + 8 + 9 = {} rows; with it 6 + 1 + 1 + 1 = {}.",
                      without, prompt + more - 1)};
}

std::vector<Solution> solutions() {
  return {rows_of_a_short_text(), cache_of_a_model(), texts_that_fit()};
}

}  // namespace t2t
