// A link as a flag names it: "30e-6,10e9" is a latency of 30 µs and 10 GB/s.
#pragma once

#include <string>

#include "19_ranks/link/link.hpp"

namespace t2t {

/// Throws std::invalid_argument, naming the flag, for anything but a latency in seconds, 0 or more,
/// a comma and a bandwidth in bytes per second, above 0.
Link link_of_flag(const std::string& text);

/// "a link of 30 us and 10 GB/s"
std::string link_text(const Link& link);

}  // namespace t2t
