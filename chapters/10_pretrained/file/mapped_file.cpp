#include "10_pretrained/file/mapped_file.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <stdexcept>
#include <string>

#include "utf8_start.hpp"

namespace t2t {

static std::runtime_error failure(const std::filesystem::path& path, std::string_view what) {
  return std::runtime_error(fmt::format("{}: {}", path.string(), what));
}

static std::string shorter(const std::filesystem::path& path) {
  return printable(path.string(), std::string::npos) + ": became shorter while it was read";
}

/// The file mapped last, and what to say when a page of it is gone.
static struct {
  const std::uint8_t* data = nullptr;
  std::size_t size = 0;
  std::string line;
} newest;

/// On SIGBUS. Does only what a signal's handler may, which is little: it can't throw.
static void end_at_a_page_that_is_gone(int, siginfo_t* signal, void*) {
  const auto* at = static_cast<const std::uint8_t*>(signal->si_addr);
  const bool known = at >= newest.data && at < newest.data + newest.size;
  const std::string_view line =
      known ? std::string_view(newest.line) : "a mapped file became shorter while it was read\n";
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
  ::_exit(1);
}

static void watch(const std::filesystem::path& path, const void* data, std::size_t size) {
  newest = {static_cast<const std::uint8_t*>(data), size, shorter(path) + "\n"};
  struct sigaction action {};
  action.sa_sigaction = end_at_a_page_that_is_gone;
  action.sa_flags = SA_SIGINFO;
  ::sigaction(SIGBUS, &action, nullptr);
}

MappedFile::MappedFile(const std::filesystem::path& path) {
  // A pipe without a writer would block here for ever, unless asked not to.
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) throw failure(path, std::strerror(errno));

  struct stat about {};
  const bool regular = ::fstat(file, &about) == 0 && S_ISREG(about.st_mode);
  const std::size_t size = regular ? std::size_t(about.st_size) : 0;
  void* data = nullptr;
  if (size > 0) data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
  const int error = errno;
  if (!data || data == MAP_FAILED) ::close(file);

  if (!regular) throw failure(path, "is not a regular file");
  if (data == MAP_FAILED) throw failure(path, std::strerror(error));
  if (size == 0) return;
  watch(path, data, size);
  data_ = {static_cast<const std::uint8_t*>(data), [file, size](const std::uint8_t* at) {
             ::munmap(const_cast<std::uint8_t*>(at), size);
             ::close(file);
           }};
  size_ = size, file_ = file, path_ = path;
}

void MappedFile::forget(std::span<const std::uint8_t> part) const {
  if (size_ == 0) return;
  const auto page = std::size_t(::sysconf(_SC_PAGESIZE));
  const auto first = std::size_t(part.data() - data_.get());  // the mapping begins with a page
  const std::size_t begin = (first + page - 1) / page * page;
  const std::size_t end = (first + part.size()) / page * page;  // pages shared with others stay
  if (begin < end)
    ::madvise(const_cast<std::uint8_t*>(data_.get()) + begin, end - begin, MADV_DONTNEED);
}

void MappedFile::expect_whole() const {
  struct stat about {};
  if (size_ > 0 && (::fstat(file_, &about) != 0 || std::size_t(about.st_size) < size_))
    throw std::runtime_error(shorter(path_));
}

}  // namespace t2t
