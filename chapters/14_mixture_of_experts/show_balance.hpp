// Small mixtures that learn the book's text with and without something that balances their load,
// beside dense models. For main.cpp.
#pragma once

#include <cstddef>
#include <string>

namespace t2t {

/// Models of 2 layers, in seconds.
void show_balance(const std::string& text, std::size_t steps, std::size_t seed);

/// --compare: a mixture, the ways to balance it and the dense models of as many active and of as
/// many total parameters, on the same tokens, with several seeds.
int show_comparison(const std::string& text, std::size_t steps, std::size_t seeds);

}  // namespace t2t
