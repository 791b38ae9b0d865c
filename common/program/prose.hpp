// The prose of the book's pages, which is the text that programs read by default.
#pragma once

#include <string>

namespace t2t {

/// Whether a page's empty lines, which separate its paragraphs, belong to its prose.
enum class EmptyLines { dropped, kept };
/// The prose of a page: no title, line of links, listings or tables.
std::string prose(const std::string& page, EmptyLines empty_lines = EmptyLines::dropped);

}  // namespace t2t
