// RoPE beyond the length that a model was trained on: slow the clock hands down, so that the slow
// ones point less, or not at all, where training did not see them. All four return Frequencies,
// [D/2], for rope_table.
//
//   linear     f / factor                                            Chen et al. 2023 (kaiokendev)
//   NTK-aware  a larger θ: the fastest pair keeps f, the slowest gets f / factor    bloc97 2023
//   Llama 3    by wavelength 2π/f: short ones keep f, long ones get f / factor      Llama 3.1 2024
//   YaRN       by pair number, and sharper scores: yarn_magnitude             Peng et al. 2023
//
// A model trained or tuned with one must be run with it. Chapter 10 reads files that ask for Llama
// 3's, and refuses the others.
#pragma once

#include <cstddef>

#include "03_rope/rope.hpp"

namespace t2t {

/// All throw std::invalid_argument, naming the number, when one is out of the range given here.
Frequencies linear_scaling(const Frequencies& frequencies,  // [D/2]
                           double factor);  // new length / trained length, at least 1

/// θ · factor^(D/(D−2)) instead of θ.
Frequencies ntk_scaling(std::size_t D,   // even, above 2
                        double theta,    // above 0
                        double factor);  // at least 1

/// Pairs that turn less than `low` times within trained positions get f / factor, those that turn
/// more than `high` times keep f; between, a blend by turns. The defaults are Llama 3.1's.
struct Llama3Scaling {
  double factor = 8;           // at least 1
  double low = 1;              // turns, above 0
  double high = 4;             // turns, above low
  std::size_t trained = 8192;  // positions
};
Frequencies llama3_scaling(const Frequencies& frequencies,  // [D/2]
                           const Llama3Scaling& scaling);

/// Pairs that turn more than `fast` times within trained positions keep f, those that turn less
/// than `slow` times get f / factor; between, a blend by pair number. The defaults are the paper's,
/// for LLaMA 1 and 2.
struct YarnScaling {
  double factor = 4;           // at least 1
  double fast = 32;            // β, turns, above slow
  double slow = 1;             // α, turns, above 0
  std::size_t trained = 2048;  // positions, at least 2π · slow, or pair 0 never turns so often
};
/// The blend runs over the pair's number, rounded outward, as in the authors' code and so in the
/// models tuned with it; the paper's formula blends by turns, and differs in those pairs. The pair
/// that turns r times within trained positions is number D · ln(trained / (2π·r)) / (2 ln θ).
Frequencies yarn_scaling(std::size_t D,  // even
                         double theta,   // above 1
                         const YarnScaling& scaling);

/// YaRN's factor on cos and sin, 0.1·ln(factor) + 1. It meets q and k, so scores grow by its
/// square: as if softmax were taken at a lower temperature.
float yarn_magnitude(double factor);

}  // namespace t2t
