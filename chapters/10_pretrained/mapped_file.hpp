// A file seen as memory: the system reads a page of it when that page is first touched.
//
// Nothing is copied, and weights that several programs use are in memory once. A file that is cut
// short while it is mapped takes its pages along: touching one ends the program, with status 1 and
// a line that names the file. Of its last page the rest becomes zeros, without a word: expect_whole
// tells. Files that are still being written go through read_file (files.hpp) instead.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

namespace t2t {

/// Read-only. Copies share the mapping, which lasts as long as one of them.
class MappedFile {
 public:
  MappedFile() = default;
  /// Throws std::runtime_error, naming the file, when it can't be opened or is no regular file.
  explicit MappedFile(const std::filesystem::path& path);

  std::span<const std::uint8_t> bytes() const { return {data_.get(), size_}; }
  /// Throws std::runtime_error, naming the file, when it is shorter now: for who has read it.
  void expect_whole() const;

 private:
  std::shared_ptr<const std::uint8_t> data_;
  std::size_t size_ = 0;
  int file_ = -1;
  std::filesystem::path path_;
};

}  // namespace t2t
