// A file mapped into memory: the system reads a page of it when that page is first touched.
//
// Nothing is copied, and weights that several programs use are in memory once. When a file becomes
// shorter while it is mapped, touching a page that is gone ends the program with status 1 and a
// line that names the file. The rest of its last page becomes zeros without an error, which
// expect_whole detects. Files that are still being written are read with read_file (files.hpp).
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
  /// Tells the system that these bytes of the file are not needed for now, so that they take no
  /// memory. Reading them again is allowed, and takes as long as the first time.
  void forget(std::span<const std::uint8_t> part) const;
  /// Throws std::runtime_error, naming the file, when it is shorter now. To be called after
  /// reading.
  void expect_whole() const;

 private:
  std::shared_ptr<const std::uint8_t> data_;
  std::size_t size_ = 0;
  int file_ = -1;
  std::filesystem::path path_;
};

}  // namespace t2t
