// Whole files in and out, with errors that name the file and what the system said.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace t2t {

/// Throws std::runtime_error, naming the file, when it can't be read or is a folder.
std::string read_file(const std::filesystem::path& path);

/// The file appears whole or not at all: it is written beside, under a name that is no other
/// file's, then renamed. A plain file of that name is replaced. Throws std::runtime_error, naming
/// the file, when that fails, and for a folder, a link or a device, which stays as it is.
void write_file(const std::filesystem::path& path, std::string_view bytes);

/// Throws std::runtime_error, naming it, unless files can be made in this folder.
void expect_room_for_files(const std::filesystem::path& folder);

/// Throws std::runtime_error, naming the first bad byte and its offset in name, unless text is
/// UTF-8.
void expect_utf8(std::string_view name, std::string_view text);

}  // namespace t2t
