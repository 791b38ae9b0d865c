// RoPE beyond the length that a model was trained on. Four ways to make pairs rotate more slowly,
// so that the slow ones stay within the angles seen in training, or nearly. Each returns
// Frequencies, [D/2], for rope_table.
//
//   linear     f / factor for all pairs
//              Chen et al. 2023 (kaiokendev)
//   NTK-aware  a larger θ: the fastest pair keeps f, the slowest gets f / factor
//              bloc97 2023
//   Llama 3    pairs with many full turns in training keep f, those with few get f / factor
//              Llama 3.1 2024
//   YaRN       as Llama 3, but interpolated by the pair's index, and with larger scores
//              (yarn_magnitude)
//              Peng et al. 2023
//
// A model that was trained or tuned with one of them must run with it. Chapter 10 reads files that
// ask for Llama 3's scaling, and refuses files that ask for another.
#pragma once

#include <cstddef>

#include "03_rope/rope.hpp"

namespace t2t {

/// These functions throw std::invalid_argument, naming the argument, when an argument is outside
/// the range given beside it.
Frequencies linear_scaling(const Frequencies& frequencies,  // [D/2]
                           double factor);  // new length / trained length, at least 1, finite

/// The frequencies for θ · factor^(D/(D−2)) instead of θ.
Frequencies ntk_scaling(std::size_t D,   // even, above 2
                        double theta,    // above 0, finite
                        double factor);  // at least 1, finite

/// Pairs that make fewer than `low` full turns within the trained positions get f / factor, and
/// those that make more than `high` keep f. In between, the two are interpolated by the number of
/// turns. The defaults are Llama 3.1's.
struct Llama3Scaling {
  double factor = 8;           // at least 1, finite
  double low = 1;              // low_freq_factor, full turns, above 0
  double high = 4;             // high_freq_factor, full turns, above low
  std::size_t trained = 8192;  // original_max_position_embeddings, positions
};
Frequencies llama3_scaling(const Frequencies& frequencies,  // [D/2]
                           const Llama3Scaling& scaling);

/// Pairs that make more than `fast` full turns within the trained positions keep f, and those that
/// make fewer than `slow` get f / factor. In between, the two are interpolated by the pair's index.
/// The defaults are the paper's, for LLaMA 1 and 2.
struct YarnScaling {
  double factor = 4;  // at least 1, finite
  double fast = 32;   // beta_fast (β in the paper), full turns, above slow
  double slow = 1;    // beta_slow (α), full turns, above 0
  /// original_max_position_embeddings: positions, at least 2π · slow (where pair 0 makes
  /// exactly `slow` turns).
  std::size_t trained = 2048;
};
/// The interpolation is linear in the pair's index, with both ends rounded outward, as in the
/// authors' code and so in the models that were tuned with it. (The paper's formula uses the number
/// of turns.) The pair that makes r turns within the trained positions has the index
/// D · ln(trained / (2π·r)) / (2 ln θ). The interpolation begins at the index of `fast`, at least
/// 0, and ends at the index of `slow`, at most D − 1. When the index of `fast` is D or more, it
/// ends before it begins, and all pairs get f / factor, even those that make more than `fast`
/// turns. That requires trained ≥ 2π·fast·θ², which no model comes near.
Frequencies yarn_scaling(std::size_t D,  // even, above 0
                         double theta,   // above 1, finite
                         const YarnScaling& scaling);

/// YaRN's factor on cos and sin (mscale, or attention_factor in Hugging Face): 0.1·ln(factor) + 1.
/// It multiplies both q and k. Scores therefore grow by its square, as they would in a softmax of
/// lower temperature.
float yarn_magnitude(double factor);  // at least 1, finite

}  // namespace t2t
