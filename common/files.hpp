// Whole files in and out, with errors that name the file and what the system said.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace t2t {

/// Its first `most` bytes: by default all of it, or of a pipe or a device, which may have no end,
/// at most 64 MiB. Throws std::runtime_error, naming the file, when it can't be read, is a folder
/// or is larger than that or than the memory that is free.
std::string read_file(const std::filesystem::path& path, std::size_t most = std::string::npos);

/// The file appears whole or not at all: it is written beside, under a name that is no other
/// file's, then renamed. A plain file of that name is replaced. Throws std::runtime_error, naming
/// the file, when that fails, and for a folder, a link or a device, which stays as it is.
void write_file(const std::filesystem::path& path, std::string_view bytes);

/// Throws what write_file would throw before it writes, so that no work is lost.
void expect_writable(const std::filesystem::path& path);

/// Throws std::runtime_error, naming it, unless files can be made in this folder.
void expect_room_for_files(const std::filesystem::path& folder);

/// Throws std::runtime_error, naming the first bad byte and its offset in name, unless text is
/// UTF-8. Where it is the beginning of a longer text, its last character may be cut.
void expect_utf8(std::string_view name, std::string_view text, bool goes_on = false);

}  // namespace t2t
