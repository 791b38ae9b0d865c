// The chapter's figure: what each KV page holds while sequences come and go. For main.cpp.
#pragma once

#include <string>

namespace t2t {

/// The run of show_pages as SVG: a row for each page, a column for each step.
std::string figure_of_pages();

}  // namespace t2t
