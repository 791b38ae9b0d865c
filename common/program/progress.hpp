// A line of progress on a terminal, for work that takes long.
#pragma once

#include <cstddef>
#include <string>

namespace t2t {

/// Writes the line over the one before, if stderr is a terminal; "" clears it.
void show_progress(const std::string& line);

/// "  ████▌      12/600": how many of all steps are done.
std::string steps_done(std::size_t done, std::size_t all);

}  // namespace t2t
