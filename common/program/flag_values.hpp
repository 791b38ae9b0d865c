// What a flag's text says: sizes and numbers, refused with what is wanted and what was given.
#pragma once

#include <cstddef>
#include <string>

namespace t2t {

/// How many bytes of an argument a message quotes.
constexpr std::size_t most_quoted_of_a_flag = 80;

/// An integer from `least` to 2^30. Throws std::invalid_argument for anything else.
std::size_t parse_size(const std::string& flag, const std::string& text, std::size_t least);

/// A finite number that a float can hold. Throws std::invalid_argument for anything else.
float parse_number(const std::string& flag, const std::string& text);

}  // namespace t2t
