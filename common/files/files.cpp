#include "files/files.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdint>
#include <stdexcept>
#include <system_error>
#include <vector>

#include "files/new_file.hpp"
#include "memory.hpp"
#include "utf8_start.hpp"

namespace t2t {

static constexpr std::size_t most_of_a_pipe = 64 << 20;

namespace {
/// A file that is open for reading.
class OpenFile {
 public:
  explicit OpenFile(const std::filesystem::path& path)
      : path_(path), file_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    if (file_ < 0) throw file_failure(path_, "can't be read");
    fcntl(file_, F_SETFL, 0);  // only opening must not wait; reading does
  }
  OpenFile(const OpenFile&) = delete;
  ~OpenFile() { close(file_); }

  /// The next bytes, at most so many; none at the file's end.
  std::string read(std::size_t most) {
    std::string bytes(most, '\0');
    ssize_t count = -1;
    do count = ::read(file_, bytes.data(), most);
    while (count < 0 && errno == EINTR);
    if (count < 0) throw file_failure(path_, "can't be read");
    bytes.resize(std::size_t(count));
    return bytes;
  }

  /// What a pipe has first. Of one that nobody opens to write to, there would be neither bytes nor
  /// an end: throws when nobody has for some seconds.
  std::string first() {
    constexpr int most_milliseconds = 5000;
    pollfd ready{file_, POLLIN, 0};
    if (!std::filesystem::is_fifo(path_) || poll(&ready, 1, most_milliseconds) != 0) return {};
    char byte;
    fcntl(file_, F_SETFL, O_NONBLOCK);
    const ssize_t count = ::read(file_, &byte, 1);  // −1 where somebody may write later
    fcntl(file_, F_SETFL, 0);
    if (count == 0) throw std::runtime_error(path_.string() + ": is a pipe that nobody writes to");
    return count > 0 ? std::string(1, byte) : std::string();
  }

 private:
  std::filesystem::path path_;
  int file_;
};
}  // namespace

std::string read_file(const std::filesystem::path& path, std::size_t most) {
  if (std::filesystem::is_directory(path))
    throw std::runtime_error(path.string() + ": is a folder, wanted a file");
  OpenFile file(path);
  std::string content = file.first();
  const bool plain = std::filesystem::is_regular_file(path);
  if (plain) {
    const std::size_t size = std::min<std::size_t>(most, std::filesystem::file_size(path));
    expect_memory(double(size), path.string(), "wanted a smaller file");
    content.reserve(size);
  }
  constexpr std::size_t at_once = 1 << 16;
  while (content.size() < most) {
    const std::string piece = file.read(std::min(at_once, most - content.size()));
    if (piece.empty()) break;
    content += piece;
    if (!plain && content.size() > most_of_a_pipe)
      throw std::runtime_error(path.string() +
                               ": wanted at most 64 MiB from a pipe or device, got more");
  }
  return content;
}

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

/// Whether NewFile could have made it: a plain file with six letters or digits after the dash.
static bool is_partial(const std::filesystem::directory_entry& entry) {
  constexpr std::string_view first = ".partial-";
  const std::string name = entry.path().filename().string();
  return name.size() == first.size() + 6 && name.starts_with(first) &&
         std::all_of(name.begin() + first.size(), name.end(),
                     [](unsigned char c) { return std::isalnum(c); }) &&
         std::filesystem::is_regular_file(entry.symlink_status());
}

void remove_partial_files(const std::filesystem::path& folder) {
  std::error_code error;
  std::vector<std::filesystem::path> left;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error))
    if (is_partial(entry)) left.push_back(entry.path());
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

std::string read_text_file(const std::filesystem::path& path) {
  std::string text = read_file(path);
  expect_utf8(path.string(), text);
  std::size_t size = 0;
  for (std::size_t i = text.starts_with("\ufeff") ? 3 : 0; i < text.size(); ++i) {
    if (text[i] == '\r' && text[i + 1] == '\n') continue;  // text[text.size()] is 0
    text[size++] = text[i] == '\r' ? '\n' : text[i];
  }
  text.resize(size);
  return text;
}

}  // namespace t2t
