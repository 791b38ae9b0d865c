#include "files/named_files.hpp"

#include <fmt/format.h>

#include <stdexcept>
#include <system_error>

#include "utf8_start.hpp"

namespace t2t {

/// A name without "." at its end: "x/" and "x/." are the folder x.
static std::filesystem::path plain(const std::filesystem::path& path) {
  std::error_code none;
  const std::filesystem::path whole = std::filesystem::absolute(path, none).lexically_normal();
  return whole.has_filename() ? whole : whole.parent_path();
}

static bool is_same(const std::filesystem::path& a, const std::filesystem::path& b) {
  std::error_code none;
  if (std::filesystem::equivalent(a, b, none)) return true;
  const std::filesystem::path x = plain(a), y = plain(b);
  if (x.filename() != y.filename()) return false;
  if (std::filesystem::equivalent(x.parent_path(), y.parent_path(), none)) return true;
  return std::filesystem::weakly_canonical(x, none) == std::filesystem::weakly_canonical(y, none);
}

/// Whether a name of the folder, as far as the program may choose it, is one of this file.
static bool may_write(const NamedFile& folder, const std::filesystem::path& file) {
  const auto of_kind = [&](const std::filesystem::path& name) {
    return folder.use == NamedFile::filled || name.extension() == ".npy";
  };
  const std::filesystem::path whole = plain(file);
  if (of_kind(whole) && is_same(whole.parent_path(), folder.path)) return true;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path, error))
    if (of_kind(entry.path()) && is_same(entry.path(), file)) return true;
  return false;
}

static bool is_folder(const NamedFile& file) {
  return file.use == NamedFile::filled || file.use == NamedFile::npy_written;
}

static void expect_apart(const NamedFile& output, const NamedFile& other) {
  const std::string name = printable(other.path.string(), 400);
  if (is_same(output.path, other.path))
    throw std::invalid_argument(
        output.flag == other.flag
            ? fmt::format("{}: wanted different files, got {} for both", output.flag, name)
            : fmt::format("{} and {}: wanted different files, got {} for both", output.flag,
                          other.flag, name));
  if (is_folder(output) && may_write(output, other.path))
    throw std::invalid_argument(
        fmt::format("{} and {}: {} lies in the folder that is written to, and may be lost",
                    output.flag, other.flag, name));
}

void expect_apart(const std::vector<NamedFile>& files) {
  for (const NamedFile& output : files) {
    if (output.use == NamedFile::read) continue;
    for (const NamedFile& other : files)
      if (&other != &output) expect_apart(output, other);
  }
}

}  // namespace t2t
