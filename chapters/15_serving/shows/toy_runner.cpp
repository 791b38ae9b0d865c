#include "15_serving/shows/toy_runner.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

namespace t2t {

int toy_answer(std::span<const int> tokens, std::size_t V) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const int token : tokens) hash = (hash ^ std::uint64_t(token)) * 0x100000001b3;
  return int((hash ^ hash >> 32) % V);
}

Drafter toy_drafter(std::size_t V, std::size_t wrong) {
  return [V, wrong](std::span<const int> tokens, std::size_t k) {
    std::vector<int> all(tokens.begin(), tokens.end());
    while (all.size() < tokens.size() + k) {
      const bool is_wrong = std::size_t(toy_answer(all, 100 * V)) / V < wrong;
      all.push_back(int((std::size_t(toy_answer(all, V)) + is_wrong) % V));
    }
    return std::vector<int>(all.begin() + long(tokens.size()), all.end());
  };
}

ModelRunner toy_runner(const EngineOptions& options, std::size_t V) {
  const auto store = std::make_shared<std::vector<int>>(options.pages * options.page_size, -1);
  const std::size_t page_size = options.page_size;
  return {options,
          V,
          options.pages * page_size,
          [store, page_size, V](std::span<const Chunk> chunks, Matrix logits) {
            for (const Chunk& chunk : chunks)
              for (std::size_t i = 0; i < chunk.ids.size(); ++i) {
                const std::size_t s = chunk.position + i;
                (*store)[chunk.table[s / page_size] * page_size + s % page_size] = chunk.ids[i];
              }
            std::size_t row = 0;
            for (const Chunk& chunk : chunks) {
              if (chunk.wanted == 0) continue;
              const std::size_t end = chunk.position + chunk.ids.size();
              std::vector<int> tokens;
              for (std::size_t s = 0; s < end; ++s) {
                tokens.push_back((*store)[chunk.table[s / page_size] * page_size + s % page_size]);
                if (end - s > chunk.wanted) continue;
                const Row of_sequence = logits.row(row++);
                std::ranges::fill(of_sequence, 0.0f);
                of_sequence[std::size_t(toy_answer(tokens, V))] = 10;
              }
            }
          },
          [store, page_size](std::size_t number) {
            const auto tokens =
                std::as_bytes(std::span(*store).subspan(number * page_size, page_size));
            return PageCopy(tokens.begin(), tokens.end());
          },
          [store, page_size](std::size_t number, std::span<const std::byte> copy) {
            const auto tokens = std::span(*store).subspan(number * page_size, page_size);
            std::ranges::copy(copy, std::as_writable_bytes(tokens).begin());
          }};
}

}  // namespace t2t
