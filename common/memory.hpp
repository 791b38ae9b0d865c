// How much memory this process can still take. It is checked before it is taken, since a system
// that runs out of memory may kill a program without a message.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace t2t {

/// The smallest of three numbers of bytes: what the system has available, with swap
/// (/proc/meminfo, or all that the machine has where there is none); what the control groups of
/// this process allow; what ulimit -v and -d allow. Infinite where none of them is known.
double free_memory();

/// What is left in a control group (version 2 or 1), by its folder: its limit minus what is in use.
/// Cached pages of files do not count as used, since the system can free them. Infinite without a
/// limit.
double left_in_group(const std::filesystem::path& group);

/// Throws std::runtime_error("what: wants about 20.5 GB of memory, …"), with what is free and the
/// remedy, when fewer bytes are free. bytes is a double, since products of sizes can overflow.
void expect_memory(double bytes, std::string_view what,
                   std::string_view remedy = "make the sizes smaller");

/// Limits this process to the memory that is free now. An allocation beyond it throws
/// std::bad_alloc, instead of the system killing the process.
void limit_memory();

/// "13.5 GB" (of 10^9 bytes) or "28 MB".
std::string bytes_text(double bytes);

}  // namespace t2t
