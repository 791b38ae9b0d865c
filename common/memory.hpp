// How much memory this process may still take, asked before it is taken: a system that has none
// left may end a program, without a word, rather than refuse what it asks for.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace t2t {

/// The smallest of three, in bytes: what the system has available, swap included (/proc/meminfo);
/// what each control group that this process is in leaves it; what ulimit -v and -d leave. Infinite
/// where none of them tells.
double free_memory();

/// What a control group's folder tells, of version 2 or 1: its limit less what is in use, where
/// pages of files don't count, since the system takes them back. Infinite without a limit.
double left_in_group(const std::filesystem::path& group);

/// Throws std::runtime_error("what: wants about 20.5 GB of memory, …"), with what is free and what
/// to do, when fewer bytes are free. Count them as doubles: products of sizes overflow.
void expect_memory(double bytes, std::string_view what,
                   std::string_view remedy = "make the sizes smaller");

/// From here on the system refuses this process more than what is free now: std::bad_alloc, also
/// where nobody counted, instead of a sudden end.
void limit_memory();

/// "13.5 GB" of 10^9 bytes; "28 MB".
std::string bytes_text(double bytes);

}  // namespace t2t
