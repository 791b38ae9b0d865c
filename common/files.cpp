#include "files.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <sstream>
#include <stdexcept>

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

void write_file(const std::filesystem::path& path, std::string_view bytes) {
  std::filesystem::path beside = path;
  beside += ".partial";
  errno = 0;
  std::ofstream file(beside, std::ios::binary | std::ios::trunc);
  file.write(bytes.data(), std::streamsize(bytes.size()));
  file.close();
  std::error_code ignored;
  if (!file) {
    const std::runtime_error error = failure(path, "can't be written");
    std::filesystem::remove(beside, ignored);
    throw error;
  }
  std::filesystem::rename(beside, path);
}

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
