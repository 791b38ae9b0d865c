#include "support/wrong_version.hpp"

#include <cstdlib>

namespace t2t {

std::uint64_t wrong_version = 0, turned_form = 0;
bool only_turned = false;
int turned_calls = 0;

static std::uint64_t number_in(const char* variable) {
  const char* name = std::getenv(variable);
  return name == nullptr ? 0 : number_of(name);
}

/// Runs before the constructors of other files' variables, some of which call a part.
[[gnu::constructor(101)]] static void read_wrong_version() {
  wrong_version = number_in("T2T_WRONG");
  turned_form = number_in("T2T_TURNED");
  only_turned = std::getenv("T2T_ONLY_TURNED") != nullptr;
}

}  // namespace t2t
