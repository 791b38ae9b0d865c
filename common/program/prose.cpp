#include "program/prose.hpp"

#include <sstream>

namespace t2t {

std::string prose(const std::string& page, EmptyLines empty_lines) {
  std::istringstream lines(page);
  std::string text;
  bool listing = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("```")) listing = !listing;
    if (line.empty() && empty_lines == EmptyLines::kept && !text.ends_with("\n\n")) text += "\n";
    const bool plain =
        !listing && !line.empty() && std::string("#|<`$[>").find(line[0]) == std::string::npos;
    if (plain && !line.starts_with("Read beside")) text += line + "\n";
  }
  return text;
}

}  // namespace t2t
