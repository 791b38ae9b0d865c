#include "support/wrong_version.hpp"

#include <cstdlib>

namespace t2t {

std::uint64_t wrong_version = 0;

/// Runs before the constructors of other files' variables, some of which call a part.
[[gnu::constructor(101)]] static void read_wrong_version() {
  const char* name = std::getenv("T2T_WRONG");
  wrong_version = name == nullptr ? 0 : number_of(name);
}

}  // namespace t2t
