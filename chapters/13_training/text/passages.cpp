#include "13_training/text/passages.hpp"

#include <algorithm>
#include <numeric>

#include "random.hpp"
#include "shapes.hpp"

namespace t2t {

static constexpr std::size_t passage_bytes = 2000;

/// Where the passage that begins at `from` ends. A line of blanks is an empty one.
static std::size_t end_of_passage(std::string_view text, std::size_t from) {
  const std::size_t least = from + passage_bytes, most = least + passage_bytes;
  std::size_t line_end = 0;  // the first one; 0 while there is none
  for (std::size_t at = least; at < std::min(most, text.size()); ++at) {
    if (text[at] != '\n') continue;
    const std::size_t next = text.find_first_not_of(" \t", at + 1);
    if (next != text.npos && text[next] == '\n') return next + 1;
    if (line_end == 0) line_end = at + 1;
  }
  if (text.size() <= most) return text.size();
  if (line_end > 0) return line_end;
  std::size_t end = least;  // in a text of one line, where a UTF-8 character begins
  while (end < most && (text[end] & 0xc0) == 0x80) ++end;
  return end;
}

SplitText split_by_passage(std::string_view text, std::size_t every) {
  expect(every >= 2, "every, how many passages there are for one held out", "at least 2", every);
  SplitText split;
  std::size_t passages = 0;
  for (std::size_t from = 0; from < text.size(); ++passages) {
    const std::size_t end = end_of_passage(text, from);
    (passages % every == every - 1 ? split.held_out : split.train)
        .append(text.substr(from, end - from));
    from = end;
  }
  expect(passages >= every, "passages of the text, of 2,000 bytes or more each",
         "at least " + std::to_string(every) + " (a longer text)", passages);
  return split;
}

Windows::Windows(std::span<const int> ids, std::size_t T, std::uint64_t seed)
    : ids_(ids), T_(T), seed_(seed) {
  expect(T >= 1, "T, the tokens of a window", "at least 1", T);
  expect(ids.size() >= 2 * T + 1, "ids, the text's tokens",
         "at least 2·T + 1 = " + std::to_string(2 * T + 1), ids.size());
  order_.resize((ids.size() - 1) / T - 1);  // one fewer than fit, so that there is room for offsets
  begin_epoch(0);
}

void Windows::begin_epoch(std::uint64_t epoch) {
  epoch_ = epoch;
  Random random(seed_, epoch);
  const auto below = [&](std::size_t n) { return std::size_t(random.next_uniform() * double(n)); };
  offset_ = below(T_ + 1);
  std::iota(order_.begin(), order_.end(), 0u);
  for (std::size_t i = order_.size(); i > 1; --i) std::swap(order_[i - 1], order_[below(i)]);
}

static void expect_room(const Batch& batch) {
  expect(batch.ids.size() == batch.B * batch.T, "ids of the batch", "room for B·T",
         batch.ids.size());
  expect(batch.targets.size() == batch.ids.size(), "targets of the batch", "room for B·T",
         batch.targets.size());
}

void Windows::fill(Batch& batch, std::uint64_t i) {
  expect(batch.T == T_, "T of the batch", "that of the windows", batch.T);
  expect_room(batch);
  for (std::size_t b = 0; b < batch.B; ++b, ++i) {
    if (i / in_epoch() != epoch_) begin_epoch(i / in_epoch());
    const std::size_t from = offset_ + order_[i % in_epoch()] * T_;
    std::ranges::copy(ids_.subspan(from, T_), &batch.ids[b * T_]);
    std::ranges::copy(ids_.subspan(from + 1, T_), &batch.targets[b * T_]);
  }
}

bool fill_in_order(Batch& batch, std::span<const int> ids, std::size_t first) {
  expect_room(batch);
  if (first + 1 >= ids.size()) return false;
  for (std::size_t i = 0; i < batch.ids.size(); ++i) {
    const bool there = first + i + 1 < ids.size();
    batch.ids[i] = there ? ids[first + i] : 0;
    batch.targets[i] = there ? ids[first + i + 1] : not_learned;
  }
  return true;
}

}  // namespace t2t
