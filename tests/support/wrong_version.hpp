// Wrong versions of a part in one program: the tutor's switches.py writes a source in which a function
// with mistakes asks which of them it is to make. The environment variable T2T_WRONG names the
// mistake.
#pragma once

#include <cstdint>
#include <string_view>

namespace t2t {

/// A number for a mistake's name (FNV-1a).
constexpr std::uint64_t number_of(std::string_view name) {
  std::uint64_t number = 14695981039346656037u;
  for (const char letter : name)
    number = (number ^ static_cast<unsigned char>(letter)) * 1099511628211u;
  return number;
}

/// The same, while compiling: a function with mistakes may be called for each row.
consteval std::uint64_t mistake(std::string_view name) { return number_of(name); }

/// The mistake that this run of the program makes, 0 for none.
extern std::uint64_t wrong_version;

/// Notes that a check calls this function, which every_assertion.cpp tells. The name must live on.
void note_call(const char* function);

}  // namespace t2t
