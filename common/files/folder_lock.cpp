#include "files/folder_lock.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace t2t {

FolderLock::FolderLock(const std::filesystem::path& folder, const std::string& name,
                       std::string_view says)
    : folder_(folder), path_(folder / name) {
  while (!opened() || !locked()) {
  }
  expect_text(says);
}

FolderLock::~FolderLock() {
  if (file_ >= 0) close(file_);
}

void FolderLock::remove_file() { unlink(path_.c_str()); }

/// Gives back what was taken, and says why.
void FolderLock::fail(std::string_view what) {
  if (made_) remove_file();
  if (file_ >= 0) close(std::exchange(file_, -1));
  throw std::runtime_error(std::string(what));
}

/// Opens the file, or makes it. False when it came into being between the two.
bool FolderLock::opened() {
  constexpr int flags = O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
  made_ = false;
  file_ = open(path_.c_str(), flags);
  if (file_ < 0 && errno == ENOENT) {
    file_ = open(path_.c_str(), flags | O_CREAT | O_EXCL, 0666);
    made_ = file_ >= 0;
    if (file_ < 0 && errno == EEXIST) return false;
  }
  if (file_ < 0)
    fail(fmt::format("{}: can't be written: {}", path_.string(), std::strerror(errno)));
  return true;
}

/// Locks what was opened. False when that is no longer the file of this name, since whoever held
/// the lock has removed it.
bool FolderLock::locked() {
  if (flock(file_, LOCK_EX | LOCK_NB) != 0) {
    const int error = errno;
    if (error == EWOULDBLOCK) made_ = false;  // it is the other one's by now
    fail(error == EWOULDBLOCK
             ? folder_.string() +
                   ": another program is at work in this folder; wait for its end, or take another"
             : fmt::format("{}: can't be locked: {}", folder_.string(), std::strerror(error)));
  }
  struct stat here {
  }, named{};
  if (fstat(file_, &here) == 0 && stat(path_.c_str(), &named) == 0 && here.st_ino == named.st_ino &&
      here.st_dev == named.st_dev)
    return true;
  close(std::exchange(file_, -1));
  return false;
}

/// An empty file is one whose maker was killed before the first word.
void FolderLock::expect_text(std::string_view says) {
  std::string text(says.size() + 1, '\0');
  const ssize_t size = pread(file_, text.data(), text.size(), 0);
  if (size > 0 && text.substr(0, std::size_t(size)) == says) return;
  if (size != 0)
    fail(path_.string() + ": wanted the file that is locked here, got another; it stays as it is");
  if (pwrite(file_, says.data(), says.size(), 0) != ssize_t(says.size()))
    fail(fmt::format("{}: can't be written: {}", path_.string(), std::strerror(errno)));
}

}  // namespace t2t
