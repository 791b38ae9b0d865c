// The router at work on a few tokens. For main.cpp.
#pragma once

#include <string>

#include "14_mixture_of_experts/router.hpp"
#include "program/program.hpp"

namespace t2t {

/// A router of random weights that chooses 2 of 4 experts for each letter of a word.
struct RoutedLetters {
  std::string text;
  std::size_t E = 4, k = 2;
  Routed routed;
};
RoutedLetters route_letters(std::size_t seed);

void show_choice(const Program& program);

}  // namespace t2t
