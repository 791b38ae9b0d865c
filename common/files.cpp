#include "files.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <sstream>
#include <stdexcept>

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

/// Bytes of the character that begins at text[0], or 0 when it is malformed: too long a form, half
/// of a surrogate pair, beyond U+10FFFF, or cut short.
static std::size_t character_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? std::uint8_t(text[i]) : 0u; };
  const std::size_t length = byte(0) < 0x80                       ? 1
                             : byte(0) >= 0xc2 && byte(0) <= 0xdf ? 2
                             : (byte(0) & 0xf0) == 0xe0           ? 3
                             : byte(0) >= 0xf0 && byte(0) <= 0xf4 ? 4
                                                                  : 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  const bool overlong = (byte(0) == 0xe0 && byte(1) < 0xa0) || (byte(0) == 0xf0 && byte(1) < 0x90);
  const bool surrogate = byte(0) == 0xed && byte(1) > 0x9f;
  const bool too_large = byte(0) == 0xf4 && byte(1) > 0x8f;
  return overlong || surrogate || too_large ? 0 : length;
}

void expect_utf8(std::string_view name, std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = character_length(text.substr(at));
    if (length == 0)
      throw std::runtime_error(
          fmt::format("{}: byte 0x{:02x} at offset {} is not UTF-8; "
                      "save the text as UTF-8",
                      name, std::uint8_t(text[at]), at));
    at += length;
  }
}

}  // namespace t2t
