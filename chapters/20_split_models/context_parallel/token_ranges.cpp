#include "20_split_models/context_parallel/token_ranges.hpp"

namespace t2t {

std::vector<Range> token_ranges(TokenOrder order, std::size_t T, std::size_t size,
                                std::size_t rank) {
  if (order == TokenOrder::neighbours) return {range_of(T, size, rank)};
  return {range_of(T, 2 * size, rank), range_of(T, 2 * size, 2 * size - 1 - rank)};
}

std::size_t tokens_in(const std::vector<Range>& ranges) {
  std::size_t tokens = 0;
  for (const Range& range : ranges) tokens += range.size();
  return tokens;
}

std::vector<std::size_t> positions_in(const std::vector<Range>& ranges) {
  std::vector<std::size_t> positions;
  for (const Range& range : ranges)
    for (std::size_t t = range.begin; t < range.end; ++t) positions.push_back(t);
  return positions;
}

std::size_t pairs_of(const std::vector<Range>& ranges) {
  std::size_t pairs = 0;
  for (const std::size_t t : positions_in(ranges)) pairs += t + 1;
  return pairs;
}

}  // namespace t2t
