#include "11_flash_attention/kernels/model/row_plan.hpp"

#include <algorithm>

namespace t2t {

/// Adds the next tokens of one entry to a chunk, from its token `done` on, as many as `room`
/// allows. Returns their number.
static std::size_t add_rows(PlannedRows& chunk, const MoreTokens& of, std::size_t length,
                            std::size_t done, std::size_t room) {
  const std::size_t count = std::min(room, of.ids.size() - done);
  chunk.runs.push_back({of.sequence, length + done, count});
  for (std::size_t i = done; i < done + count; ++i) {
    if (of.ids.size() - i <= of.wanted) chunk.wanted.push_back(int(chunk.T()));
    chunk.ids.push_back(of.ids[i]);
    chunk.positions.push_back(int(length + i));
    chunk.sequences.push_back(int(of.sequence));
  }
  return count;
}

std::vector<PlannedRows> plan_rows(std::span<const MoreTokens> more,
                                   std::span<const std::size_t> lengths, std::size_t most_rows) {
  std::vector<PlannedRows> chunks(1);
  for (const MoreTokens& of : more)
    for (std::size_t done = 0; done < of.ids.size();) {
      if (chunks.back().T() == most_rows) chunks.emplace_back();
      PlannedRows& chunk = chunks.back();
      done += add_rows(chunk, of, lengths[of.sequence], done, most_rows - chunk.T());
    }
  return chunks;
}

}  // namespace t2t
