#include "files/new_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <utility>

namespace t2t {

std::runtime_error file_failure(const std::filesystem::path& path, const char* what) {
  return std::runtime_error(
      fmt::format("{}: {}: {}", path.string(), what, std::strerror(errno ? errno : EIO)));
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

/// Opens a file without a name, which can be given one later through /proc; −1 where there is none.
static int open_nameless([[maybe_unused]] const std::filesystem::path& folder) {
#ifdef O_TMPFILE
  if (access("/proc/self/fd", X_OK) == 0)
    return open(folder.empty() ? "." : folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
#endif
  return -1;
}

NewFile::NewFile(const std::filesystem::path& folder, const std::filesystem::path& path,
                 const char* refusal)
    : folder_(folder), path_(path), file_(open_nameless(folder)) {
  if (file_ >= 0) return;
  name_ = (folder_ / ".partial-XXXXXX").string();
  errno = 0;
  file_ = mkstemp(name_.data());
  if (file_ < 0) throw file_failure(path, refusal);
}

NewFile::~NewFile() {
  if (file_ >= 0) close(file_);
  if (!name_.empty()) unlink(name_.c_str());
}

void NewFile::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(file_, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw file_failure(path_, "can't be written");
    bytes.remove_prefix(std::size_t(count));
  }
}

/// A name can't be given in another file's place, so this one is new; rename comes after it.
bool NewFile::give_a_name() {
  const std::string self = fmt::format("/proc/self/fd/{}", file_);
  std::random_device random;
  while (name_.empty()) {
    const std::string name = (folder_ / fmt::format(".partial-{:08x}", random())).string();
    if (linkat(AT_FDCWD, self.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0)
      name_ = name;
    else if (errno != EEXIST)
      return false;
  }
  return true;
}

void NewFile::keep() {
  const mode_t mask = umask(0);
  umask(mask);
  if (fchmod(file_, 0666 & ~mask) != 0 || !synced(file_) || !give_a_name() ||
      close(std::exchange(file_, -1)) != 0 || std::rename(name_.c_str(), path_.c_str()) != 0)
    throw file_failure(path_, "can't be written");
  name_.clear();
  if (!synced_folder(path_.parent_path())) throw file_failure(path_, "is written, but may be lost");
}

}  // namespace t2t
