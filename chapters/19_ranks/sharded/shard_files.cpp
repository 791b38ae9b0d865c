#include "19_ranks/sharded/shard_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>

#include "13_training/trainer/checksum.hpp"
#include "19_ranks/collectives/range.hpp"
#include "19_ranks/collectives/values.hpp"
#include "files/files.hpp"

namespace t2t {

/// Does this rank's share of some work. If it fails on one rank, all throw. Nobody returns before
/// all have done theirs.
static void on_every_rank(const Communicator& ranks, const std::string& what,
                          const std::function<void()>& share) {
  std::string error;
  try {
    share();
  } catch (const std::exception& thrown) {
    error = thrown.what();
  }
  const std::vector<double> failed = value_of_each(ranks, error.empty() ? 0 : 1);
  const auto first = std::ranges::find(failed, 1);
  if (first == failed.end()) return;
  if (error.empty())
    error = fmt::format("{}: rank {} has failed, which says why", what, first - failed.begin());
  throw std::runtime_error(error);
}

static std::string file_name(std::size_t step, std::size_t rank, std::size_t size) {
  return fmt::format("step-{}-rank-{}-of-{}", step, rank, size);
}

static std::span<const std::uint8_t> bytes_of(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}
static std::string_view text_of(ConstRow row) {
  return {reinterpret_cast<const char*>(row.data()), row.size() * sizeof(float)};
}

/// Writes this rank's file, and returns its checksum.
static std::uint64_t write_shard(const std::filesystem::path& file, const ShardState& state) {
  Checksum checksum;
  write_file(file, [&](const WriteBytes& write) {
    for (const std::vector<ListedTensor>& list : state)
      for (const ListedTensor& tensor : list) {
        write(text_of(tensor.numbers));
        checksum.add(bytes_of(text_of(tensor.numbers)));
      }
  });
  return std::stoull(checksum.text(), nullptr, 16);
}

/// The files of other steps, those of a run on another number of ranks, and what a killed run left.
static void delete_older(const std::filesystem::path& folder, std::size_t step, std::size_t size) {
  const std::string begin = fmt::format("step-{}-rank-", step), end = fmt::format("-of-{}", size);
  std::vector<std::filesystem::path> older;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("step-") && !(name.starts_with(begin) && name.ends_with(end)))
      older.push_back(entry.path());
  }
  for (const std::filesystem::path& file : older) std::filesystem::remove(file);
  remove_partial_files(folder);
}

void save_shards(const Communicator& ranks, const std::filesystem::path& folder, std::size_t step,
                 const ShardState& state) {
  std::uint64_t checksum = 0;
  on_every_rank(ranks, folder.string(), [&] {
    checksum = write_shard(folder / file_name(step, ranks.rank, ranks.size), state);
  });
  // A checksum travels in two halves of 32 bits.
  const std::vector<double> upper = value_of_each(ranks, double(checksum >> 32));
  const std::vector<double> lower = value_of_each(ranks, double(checksum & 0xffffffff));
  on_every_rank(ranks, folder.string(), [&] {
    if (ranks.rank != 0) return;
    std::string index = fmt::format("step {} ranks {}\n", step, ranks.size);
    for (std::size_t r = 0; r < ranks.size; ++r)
      index += fmt::format("{:08x}{:08x}\n", std::uint64_t(upper[r]), std::uint64_t(lower[r]));
    write_file(folder / "index", index);
    delete_older(folder, step, ranks.size);
  });
}

/// Copies from one rank's file what lies in this rank's chunks.
static void take_from(const Communicator& ranks, std::string_view bytes, std::size_t writer,
                      std::size_t writers, const ShardState& state) {
  for (const std::vector<ListedTensor>& list : state)
    for (const auto& [info, numbers] : list) {
      const Range theirs = range_of(info.size(), writers, writer),
                  mine = range_of(info.size(), ranks.size, ranks.rank);
      const std::size_t begin = std::max(theirs.begin, mine.begin),
                        end = std::min(theirs.end, mine.end);
      if (begin < end)
        std::memcpy(&numbers[begin - mine.begin],
                    bytes.data() + (begin - theirs.begin) * sizeof(float),
                    (end - begin) * sizeof(float));
      bytes.remove_prefix(theirs.size() * sizeof(float));
    }
}

static std::size_t length_of(const ShardState& state, std::size_t rank, std::size_t size) {
  std::size_t elements = 0;
  for (const std::vector<ListedTensor>& list : state)
    for (const ListedTensor& tensor : list)
      elements += range_of(tensor.info.size(), size, rank).size();
  return elements * sizeof(float);
}

std::size_t load_shards(const Communicator& ranks, const std::filesystem::path& folder,
                        const ShardState& state) {
  std::size_t step = 0;
  on_every_rank(ranks, folder.string(), [&] {
    std::istringstream index(read_file(folder / "index", 1 << 20));
    std::string step_word, ranks_word, checksum;
    std::size_t writers = 0;
    index >> step_word >> step >> ranks_word >> writers;
    if (!index || step_word != "step" || ranks_word != "ranks" || writers == 0)
      throw std::runtime_error(fmt::format("{}: wanted \"step N ranks P\", got something else",
                                           (folder / "index").string()));
    for (std::size_t r = 0; r < writers; ++r) {
      index >> checksum;
      const std::filesystem::path file = folder / file_name(step, r, writers);
      const std::string bytes = read_file(file);
      const std::size_t length = length_of(state, r, writers);
      if (bytes.size() != length)
        throw std::runtime_error(fmt::format("{}: wanted {} bytes for this model, got {}",
                                             file.string(), length, bytes.size()));
      if (Checksum().add(bytes_of(bytes)).text() != checksum)
        throw std::runtime_error(file.string() + ": its checksum is not the index's");
      take_from(ranks, bytes, r, writers, state);
    }
  });
  return step;
}

}  // namespace t2t
