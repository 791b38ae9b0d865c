// --rivals: a mixture, the ways to balance it, finer experts and a shared network, compared with
// dense models of as many active and of as many total parameters, on the same tokens, with several
// seeds. For main.cpp.
#pragma once

#include <cstddef>
#include <string>

namespace t2t {

/// Returns 0, the program's exit status.
int show_rivals(const std::string& text, std::size_t steps, std::size_t seeds);

}  // namespace t2t
