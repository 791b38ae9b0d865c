// A text divided for training: passages to learn from and passages that are held out, and windows
// of tokens in a new order for each epoch.
//
// A model is judged on text that it has not seen. Neighbouring sentences say similar things, so
// whole passages are held out, not single lines.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "13_training/backward/model_backward.hpp"

namespace t2t {

struct SplitText {
  std::string train, held_out;
};
/// Passages end after the first empty line, which may hold blanks, that begins at 2,000 to 4,000
/// bytes. Without one they end after the first line from 2,000 bytes on, without a line's end at a
/// character there; the last one ends with the text. Every `every`-th is held out. Throws
/// std::invalid_argument when `every` is below 2, and when the text has fewer passages than that.
SplitText split_by_passage(std::string_view text, std::size_t every = 10);

/// Windows of T tokens, each with the token that follows. In an epoch each window is used once, in
/// an order that depends on seed and epoch alone; each epoch's windows begin at another offset.
class Windows {
 public:
  /// The ids must outlive it. Throws std::invalid_argument when T is 0 and when there are fewer
  /// than 2·T + 1 ids.
  Windows(std::span<const int> ids, std::size_t T, std::uint64_t seed);

  std::size_t in_epoch() const { return order_.size(); }
  /// Fills the batch with B windows, number i, i + 1 … counted over all epochs. Throws
  /// std::invalid_argument for a batch of another T, or without room for B·T ids and targets.
  void fill(Batch& batch, std::uint64_t i);

 private:
  void begin_epoch(std::uint64_t epoch);

  std::span<const int> ids_;
  std::size_t T_, offset_ = 0;
  std::uint64_t seed_, epoch_ = 0;
  std::vector<std::uint32_t> order_;
};

/// Windows one after the other, for measuring: B sequences of T tokens from ids first, first + B·T
/// … Targets beyond the end are not_learned. Returns false when there is nothing left. Throws
/// std::invalid_argument for a batch without room for B·T ids and targets.
bool fill_in_order(Batch& batch, std::span<const int> ids, std::size_t first);

}  // namespace t2t
