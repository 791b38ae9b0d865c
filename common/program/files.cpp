#include "program/files.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <system_error>
#include <utility>
#include <vector>

#include "program/memory.hpp"
#include "program/utf8_start.hpp"

namespace t2t {

static std::runtime_error failure(const std::filesystem::path& path, const char* what) {
  return std::runtime_error(
      fmt::format("{}: {}: {}", path.string(), what, std::strerror(errno ? errno : EIO)));
}

static constexpr std::size_t most_of_a_pipe = 64 << 20;

std::string read_file(const std::filesystem::path& path, std::size_t most) {
  if (std::filesystem::is_directory(path))
    throw std::runtime_error(path.string() + ": is a folder, wanted a file");
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) throw failure(path, "can't be read");
  std::string content, piece(1 << 16, '\0');
  const bool plain = std::filesystem::is_regular_file(path);
  if (plain) {
    const std::size_t size = std::min<std::size_t>(most, std::filesystem::file_size(path));
    expect_memory(double(size), path.string(), "wanted a smaller file");
    content.reserve(size);
  }
  while (file && content.size() < most) {
    file.read(piece.data(), std::streamsize(std::min(piece.size(), most - content.size())));
    content.append(piece, 0, std::size_t(file.gcount()));
    if (!plain && content.size() > most_of_a_pipe)
      throw std::runtime_error(path.string() +
                               ": wanted at most 64 MiB from a pipe or device, got more");
  }
  if (file.bad()) throw failure(path, "can't be read");
  return content;
}

/// Waits until what was written is on the disk. False when it can't get there.
static bool synced(int file) {
  int failed = fsync(file);
  while (failed && errno == EINTR) failed = fsync(file);
  return !failed;
}

/// A file's new name is kept by its folder, which is synced too, where the file system offers that.
static bool synced_folder(const std::filesystem::path& folder) {
  const int file = open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file < 0) return errno == EACCES;  // files can be made in it, but it can't be read
  const bool done = synced(file) || errno == EINVAL;
  close(file);
  return done;
}

/// A new, empty file in the folder of `path`. It is removed unless keep() is called. Its name is
/// new, so no existing file or link is followed or replaced.
class NewFile {
 public:
  explicit NewFile(const std::filesystem::path& path) : NewFile(path.parent_path(), path) {}
  /// refusal: the message about path when no file can be made in the folder.
  NewFile(const std::filesystem::path& folder, const std::filesystem::path& path,
          const char* refusal = "can't be written")
      : path_(path), name_((folder / ".partial-XXXXXX").string()) {
    errno = 0;
    file_ = mkstemp(name_.data());
    if (file_ < 0) throw failure(path, refusal);
  }
  NewFile(const NewFile&) = delete;
  ~NewFile() {
    if (file_ >= 0) close(file_);
    if (!kept_) unlink(name_.c_str());
  }

  void write(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t count = ::write(file_, bytes.data(), bytes.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) throw failure(path_, "can't be written");
      bytes.remove_prefix(std::size_t(count));
    }
  }
  /// Renames it to `path`, with the permissions of a new file. Its bytes are on the disk before
  /// that: after a power failure the name leads to the old file or to all of the new one.
  void keep() {
    const mode_t mask = umask(0);
    umask(mask);
    if (fchmod(file_, 0666 & ~mask) != 0 || !synced(file_) ||
        close(std::exchange(file_, -1)) != 0 || std::rename(name_.c_str(), path_.c_str()) != 0)
      throw failure(path_, "can't be written");
    kept_ = true;
    if (!synced_folder(path_.parent_path())) throw failure(path_, "is written, but may be lost");
  }

 private:
  std::filesystem::path path_;
  std::string name_;
  int file_ = -1;
  bool kept_ = false;
};

static void expect_plain_or_none(const std::filesystem::path& path) {
  const std::filesystem::file_status there = std::filesystem::symlink_status(path);
  if (std::filesystem::exists(there) && !std::filesystem::is_regular_file(there))
    throw std::runtime_error(path.string() +
                             ": wanted a plain file or none, got a folder, a link or a device; it "
                             "stays as it is");
}

void write_file(const std::filesystem::path& path, std::string_view bytes) {
  write_file(path, [&](const WriteBytes& write) { write(bytes); });
}

void write_file(const std::filesystem::path& path,
                const std::function<void(const WriteBytes& write)>& fill) {
  expect_plain_or_none(path);
  NewFile file(path);
  fill([&](std::string_view bytes) { file.write(bytes); });
  file.keep();
}

void remove_partial_files(const std::filesystem::path& folder) {
  std::error_code error;
  std::vector<std::filesystem::path> left;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error))
    if (entry.path().filename().string().starts_with(".partial-")) left.push_back(entry.path());
  for (const std::filesystem::path& file : left) std::filesystem::remove(file, error);
}

void expect_writable(const std::filesystem::path& path) {
  expect_plain_or_none(path);
  NewFile file(path);
}

void expect_room_for_files(const std::filesystem::path& folder) {
  NewFile file(folder, folder, "no files can be made in it");
}

void expect_utf8(std::string_view name, std::string_view text, bool goes_on) {
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Start start = utf8_start(text.substr(at));
    if (goes_on && start.kind == Utf8Start::cut) return;
    if (start.kind != Utf8Start::whole)
      throw std::runtime_error(
          fmt::format("{}: byte 0x{:02x} at offset {} is not UTF-8; "
                      "save the text as UTF-8",
                      name, std::uint8_t(text[at]), at));
    at += start.length;
  }
}

}  // namespace t2t
