// The activations as curves in characters, for the terminal.
#pragma once

#include <array>

#include "07_swiglu/activations.hpp"

namespace t2t {

struct Curve {
  Activation activation;
  const char* letter;
  int colour;  // the terminal's number
};

inline constexpr std::array curves = {Curve{Activation::relu, "R", 35},
                                      Curve{Activation::gelu, "G", 36},
                                      Curve{Activation::silu, "S", 33}};

/// Each curve at count places from low to high, ends included: [3, count].
Tensor<2> curve_points(float low, float high, std::size_t count);

/// The section: the curves and some of their values.
void show_curves();

/// The section: one hidden channel for five gates.
void show_gates();

}  // namespace t2t
