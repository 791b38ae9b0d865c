// Finds a kernel's static shared memory on the stand-in. There a __shared__ array is a static
// array, whose symbol name begins with that of its kernel. The program's table of symbols gives the
// kernel's name for its address, and then the addresses of its arrays.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace t2t::stand_in {

/// The __shared__ variables that the kernel itself declares, not those of functions that it calls.
/// Empty when the program has no readable table of symbols (it is stripped, or not ELF).
const std::vector<std::span<std::byte>>& static_shared(const void* kernel);

}  // namespace t2t::stand_in
