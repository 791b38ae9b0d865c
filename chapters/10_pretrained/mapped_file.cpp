#include "10_pretrained/mapped_file.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace t2t {

static std::runtime_error failure(const std::filesystem::path& path, std::string_view what) {
  return std::runtime_error(fmt::format("{}: {}", path.string(), what));
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
  ::close(file);  // the mapping stays

  if (!regular) throw failure(path, "is not a regular file");
  if (data == MAP_FAILED) throw failure(path, std::strerror(error));
  if (size == 0) return;
  data_ = {static_cast<const std::uint8_t*>(data),
           [size](const std::uint8_t* at) { ::munmap(const_cast<std::uint8_t*>(at), size); }};
  size_ = size;
}

}  // namespace t2t
