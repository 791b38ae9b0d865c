// Reads and writes whole files. Errors name the file and the reason that the system gave.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace t2t {

/// The first `most` bytes of a file; by default all of it. A pipe or a device, which may have no
/// end, may give at most 64 MiB. Throws std::runtime_error, naming the file, when it can't be read,
/// is a folder, gives more than that, is larger than the memory that is free, or is a pipe that
/// nobody writes to.
std::string read_file(const std::filesystem::path& path, std::size_t most = std::string::npos);

/// A file of UTF-8 text, also as other systems save it: its lines end with \n where the file has
/// \r\n or \r, and it begins after a byte order mark. Throws as read_file and expect_utf8 do.
std::string read_text_file(const std::filesystem::path& path);

/// Writes a file, which appears complete or not at all, even if the power fails: the bytes go to a
/// new file in the same folder, which is renamed once they are on the disk. A plain file of that
/// name is replaced. Throws std::runtime_error, naming the file, when that fails (a full disk, for
/// instance), and for a folder, a link or a device, which stays as it is.
void write_file(const std::filesystem::path& path, std::string_view bytes);

/// The same for a file that is larger than memory should hold: `fill` writes its bytes in pieces.
/// When fill throws, there is no file.
using WriteBytes = std::function<void(std::string_view bytes)>;
void write_file(const std::filesystem::path& path,
                const std::function<void(const WriteBytes& write)>& fill);

/// Removes from a folder what programs that were killed inside write_file left there: plain files
/// with names such as .partial-a1B2c3. The folder must be the caller's own.
void remove_partial_files(const std::filesystem::path& folder);

/// Throws now what write_file would throw later, so that no work is lost.
void expect_writable(const std::filesystem::path& path);

/// Throws std::runtime_error, naming it, unless files can be made in this folder.
void expect_room_for_files(const std::filesystem::path& folder);

/// Throws std::runtime_error, with name, the first bad byte and its offset, unless text is UTF-8.
/// With goes_on it is the beginning of a longer text, and its last character may be incomplete.
void expect_utf8(std::string_view name, std::string_view text, bool goes_on = false);

}  // namespace t2t
