#include "21_pipeline/checkpoint/part_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <sstream>
#include <stdexcept>
#include <string>

#include "13_training/trainer/checksum.hpp"
#include "19_ranks/collectives/values.hpp"
#include "files/files.hpp"
#include "shapes.hpp"

namespace t2t {

namespace fs = std::filesystem;

std::vector<TensorInfo> tensors_in_parts(const Config& whole) {
  std::vector<TensorInfo> list;
  ModelWeights none = room_for(whole);
  for_each_tensor(none, whole, [&](const TensorInfo& info, const auto&) {
    if (info.size() > 0) list.push_back(info);
  });
  if (!whole.tied) return list;
  TensorInfo head = list.front();
  head.name = "head";
  list.push_back(head);
  return list;
}

std::size_t TensorPart::size() const {
  std::size_t count = 0;
  for (const Range& range : rows) count += range.size();
  return count * cols.size();
}

/// The table as floats, since a file consists of them: how many parts, then of each its tensor, its
/// columns, how many ranges of rows, and these.
static std::vector<float> table_of(const std::vector<TensorPart>& parts) {
  std::vector<std::size_t> table = {parts.size()};
  for (const TensorPart& part : parts) {
    table.insert(table.end(), {part.tensor, part.cols.begin, part.cols.end, part.rows.size()});
    for (const Range& rows : part.rows) table.insert(table.end(), {rows.begin, rows.end});
  }
  for (const std::size_t n : table)
    expect(n < (1 << 24), "a number of the table of parts", "below 2^24", n);
  return {table.begin(), table.end()};
}

void save_parts(const Communicator& ranks, const fs::path& folder, std::size_t step,
                const PartState& state) {
  for (const std::vector<ListedTensor>& list : state.elements) {
    expect(list.size() == state.parts.size(), "rows of a list",
           fmt::format("one for each of {} parts", state.parts.size()), list.size());
    for (std::size_t i = 0; i < list.size(); ++i)
      expect(list[i].numbers.size() == state.parts[i].size(), full_name(list[i].info),
             fmt::format("{} elements", state.parts[i].size()), list[i].numbers.size());
  }
  std::vector<float> table = table_of(state.parts);
  ShardState with_table = state.elements;
  with_table[0].insert(with_table[0].begin(), {{"parts", table.size(), 1, Role::bias}, table});
  save_shards(ranks, folder, step, with_table);
}

/// What the index says.
struct PartsIndex {
  std::size_t step = 0;
  std::vector<std::string> checksums;  // [writers]
};
static PartsIndex read_index(const fs::path& file) {
  std::istringstream text(read_file(file, 1 << 20));
  std::string step_word, ranks_word, checksum;
  std::size_t writers = 0;
  PartsIndex index;
  text >> step_word >> index.step >> ranks_word >> writers;
  while (index.checksums.size() < writers && text >> checksum) index.checksums.push_back(checksum);
  if (step_word != "step" || ranks_word != "ranks" || writers == 0 ||
      index.checksums.size() != writers)
    throw std::runtime_error(fmt::format(
        "{}: wanted \"step N ranks P\" and P checksums, got something else", file.string()));
  return index;
}

/// One rank's file, as floats that are taken from its beginning.
class PartReader {
 public:
  PartReader(const fs::path& file, const std::string& checksum) : name_(file.string()) {
    const std::string bytes = read_file(file);
    const auto* first = reinterpret_cast<const std::uint8_t*>(bytes.data());
    if (Checksum().add({first, bytes.size()}).text() != checksum)
      throw std::runtime_error(name_ + ": its checksum is not the index's");
    floats_.resize(bytes.size() / sizeof(float));
    std::memcpy(floats_.data(), bytes.data(), floats_.size() * sizeof(float));
  }

  ConstRow take(std::size_t count) {
    if (count > floats_.size() - taken_) refuse();
    taken_ += count;
    return ConstRow(floats_).subspan(taken_ - count, count);
  }
  std::size_t take_integer() {
    const float x = take(1)[0];
    if (!(x >= 0 && x < float(1 << 24))) refuse();
    return std::size_t(x);
  }
  Range take_range() {
    const std::size_t begin = take_integer(), end = take_integer();
    if (begin > end) refuse();
    return {begin, end};
  }
  [[noreturn]] void refuse() const {
    throw std::runtime_error(name_ +
                             ": wanted a table of parts and their elements, got something "
                             "else");
  }
  bool is_at_end() const { return taken_ == floats_.size(); }

 private:
  std::string name_;
  std::vector<float> floats_;
  std::size_t taken_ = 0;
};

static std::vector<TensorPart> take_table(PartReader& file) {
  std::vector<TensorPart> parts;
  for (std::size_t count = file.take_integer(); parts.size() < count;) {
    TensorPart& part = parts.emplace_back();
    part.tensor = file.take_integer(), part.cols = file.take_range();
    for (std::size_t ranges = file.take_integer(); part.rows.size() < ranges;)
      part.rows.push_back(file.take_range());
  }
  return parts;
}

/// Copies the elements that both parts have, and notes which of `to` these are.
static void copy_common(const TensorPart& from, ConstRow source, const TensorPart& to, Row target,
                        std::vector<bool>& found) {
  const auto common = [](Range a, Range b) {
    const std::size_t begin = std::max(a.begin, b.begin);
    return Range{begin, std::max(begin, std::min(a.end, b.end))};
  };
  const Range cols = common(from.cols, to.cols);
  std::size_t from_row = 0;  // where a range of rows begins in `source`
  for (const Range& theirs : from.rows) {
    std::size_t to_row = 0;
    for (const Range& mine : to.rows) {
      const Range rows = common(theirs, mine);
      for (std::size_t r = rows.begin; r < rows.end; ++r)
        for (std::size_t c = cols.begin; c < cols.end; ++c) {
          const std::size_t i = (to_row + r - mine.begin) * to.cols.size() + c - to.cols.begin;
          const std::size_t row = from_row + r - theirs.begin;
          target[i] = source[row * from.cols.size() + c - from.cols.begin];
          found[i] = true;
        }
      to_row += mine.size();
    }
    from_row += theirs.size();
  }
}

/// Which elements of each part of a state have been found.
using FoundElements = std::vector<std::vector<bool>>;

/// Takes what one rank's file has of this state.
static void take_file(PartReader& file, const PartState& state,
                      std::array<FoundElements, 3>& found) {
  const std::vector<TensorPart> parts = take_table(file);
  for (std::size_t list = 0; list < state.elements.size(); ++list)
    for (const TensorPart& part : parts) {
      const ConstRow elements = file.take(part.size());
      for (std::size_t i = 0; i < state.parts.size(); ++i)
        if (state.parts[i].tensor == part.tensor)
          copy_common(part, elements, state.parts[i], state.elements[list][i].numbers,
                      found[list][i]);
    }
  if (!file.is_at_end()) file.refuse();
}

static std::size_t read_parts(const fs::path& folder, const PartState& state) {
  const PartsIndex index = read_index(folder / "index");
  std::array<FoundElements, 3> found;
  for (FoundElements& list : found)
    for (const TensorPart& part : state.parts) list.emplace_back(part.size());
  const std::size_t writers = index.checksums.size();
  for (std::size_t r = 0; r < writers; ++r) {
    PartReader file(folder / fmt::format("step-{}-rank-{}-of-{}", index.step, r, writers),
                    index.checksums[r]);
    take_file(file, state, found);
  }
  for (const FoundElements& list : found)
    for (std::size_t i = 0; i < list.size(); ++i)
      if (std::ranges::find(list[i], false) != list[i].end())
        throw std::runtime_error(fmt::format("{}: wanted all elements of {}, got some",
                                             folder.string(),
                                             full_name(state.elements[0][i].info)));
  return index.step;
}

std::size_t load_parts(const Communicator& ranks, const fs::path& folder, const PartState& state) {
  std::size_t step = 0;
  std::string error;
  try {
    step = read_parts(folder, state);
  } catch (const std::exception& thrown) {
    error = thrown.what();
  }
  expect_on_all(ranks, error.empty(),
                error.empty() ? folder.string() + ": another rank could not read it" : error);
  return step;
}

}  // namespace t2t
