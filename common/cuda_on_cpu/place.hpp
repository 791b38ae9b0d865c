// A place in a kernel's source. clang has std::source_location from version 16 on; for older ones,
// the part of it that the stand-in uses is here.
#pragma once

#include <version>

#ifdef __cpp_lib_source_location
#include <source_location>
#endif

namespace t2t::stand_in {

/// Where a function is called in a kernel's source; functions take it as a default argument.
#ifdef __cpp_lib_source_location
using Place = std::source_location;
#else
class Place {
 public:
  static constexpr Place current(const char* file = __builtin_FILE(),
                                 unsigned line = __builtin_LINE(),
                                 unsigned column = __builtin_COLUMN()) {
    Place here;
    here.file_ = file, here.line_ = line, here.column_ = column;
    return here;
  }
  constexpr const char* file_name() const { return file_; }
  constexpr unsigned line() const { return line_; }
  constexpr unsigned column() const { return column_; }

 private:
  const char* file_ = "";
  unsigned line_ = 0, column_ = 0;
};
#endif

}  // namespace t2t::stand_in
