// Where a kernel's static shared memory lies on the stand-in. There a __shared__ array is a static
// one, whose name begins with its kernel's: the program's own table of symbols leads from the
// kernel's address to its name, and from there to its arrays.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace t2t::stand_in {

/// The __shared__ variables that the kernel declares itself (not those of functions it calls).
/// Empty where the program has no table of symbols that we can read (stripped, or not ELF).
const std::vector<std::span<std::byte>>& static_shared(const void* kernel);

}  // namespace t2t::stand_in
