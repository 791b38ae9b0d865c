// The activations as curves: in characters for the terminal, and as a picture for the page.
#pragma once

#include <array>
#include <string>

#include "07_swiglu/activations.hpp"

namespace t2t {

struct Curve {
  Activation activation;
  const char* letter;  // in the terminal
  const char* colour;  // in the picture: a middle tone, readable on light and on dark
  int terminal_colour;
};

inline constexpr std::array curves = {Curve{Activation::relu, "R", "#8b5cf6", 35},
                                      Curve{Activation::gelu, "G", "#0d9488", 36},
                                      Curve{Activation::silu, "S", "#ea580c", 33}};

/// The section: the curves and some of their values.
void show_curves();

/// The section: one hidden channel for five gates.
void show_gates();

/// The same curves from -5 to 3, as SVG without a background.
void write_curves_svg(const std::string& file);

}  // namespace t2t
