#include "files.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "utf8_start.hpp"

namespace t2t {

static std::runtime_error failure(const std::filesystem::path& path, const char* what) {
  return std::runtime_error(
      fmt::format("{}: {}: {}", path.string(), what, std::strerror(errno ? errno : EIO)));
}

std::string read_file(const std::filesystem::path& path) {
  if (std::filesystem::is_directory(path))
    throw std::runtime_error(path.string() + ": is a folder, wanted a file");
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::ostringstream content;
  if (!file) throw failure(path, "can't be read");
  if (file.peek() != std::ifstream::traits_type::eof()) content << file.rdbuf();
  if (file.bad() || !content) throw failure(path, "can't be read");
  return std::move(content).str();
}

/// A new, empty file in the folder of `path`, which is removed unless it is kept. Its name is one
/// that no other file has: what is there already is neither followed nor replaced.
class NewFile {
 public:
  explicit NewFile(const std::filesystem::path& path)
      : path_(path), name_((path.parent_path() / ".partial-XXXXXX").string()) {
    errno = 0;
    file_ = mkstemp(name_.data());
    if (file_ < 0) throw failure(path, "can't be written");
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
  /// Gives it the name `path`, and the rights that any new file has.
  void keep() {
    const mode_t mask = umask(0);
    umask(mask);
    const bool allowed = fchmod(file_, 0666 & ~mask) == 0;
    const bool closed = close(std::exchange(file_, -1)) == 0;
    if (!allowed || !closed || std::rename(name_.c_str(), path_.c_str()) != 0)
      throw failure(path_, "can't be written");
    kept_ = true;
  }

 private:
  std::filesystem::path path_;
  std::string name_;
  int file_ = -1;
  bool kept_ = false;
};

void write_file(const std::filesystem::path& path, std::string_view bytes) {
  const std::filesystem::file_status there = std::filesystem::symlink_status(path);
  if (std::filesystem::exists(there) && !std::filesystem::is_regular_file(there))
    throw std::runtime_error(path.string() +
                             ": is there and no plain file (a folder, a link or a device): it "
                             "stays as it is");
  NewFile file(path);
  file.write(bytes);
  file.keep();
}

void expect_room_for_files(const std::filesystem::path& folder) { NewFile(folder / "any"); }

void expect_utf8(std::string_view name, std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Start start = utf8_start(text.substr(at));
    if (start.kind != Utf8Start::whole)
      throw std::runtime_error(
          fmt::format("{}: byte 0x{:02x} at offset {} is not UTF-8; "
                      "save the text as UTF-8",
                      name, std::uint8_t(text[at]), at));
    at += start.length;
  }
}

}  // namespace t2t
