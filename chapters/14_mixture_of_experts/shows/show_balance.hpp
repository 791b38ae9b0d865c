// Small mixtures that learn the book's text with and without a balanced load. For main.cpp.
#pragma once

#include <cstddef>
#include <string>

namespace t2t {

/// Trains models of 2 layers, in seconds.
void show_balance(const std::string& text, std::size_t steps, std::size_t seed);

}  // namespace t2t
