// Trains small mixtures and dense models for the shows, all on the same tokens.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "09_language_model/config.hpp"
#include "13_training/text/passages.hpp"
#include "14_mixture_of_experts/training/experts_backward.hpp"

namespace t2t {

/// What is trained: a mixture, or a dense model.
struct MixtureSide {
  std::string name;
  Balance balance = {};
  std::size_t experts = 8, k = 2, F = 88;  // without experts, the one network's F
  bool normalized = true;
  std::size_t shared = 0;  // F of a network that all tokens share; 0: none
  double more_steps = 1;   // as a multiple of the others' steps

  bool is_dense() const { return experts == 0; }
};

/// 64 channels, 4 heads, and L blocks.
Config config_of(const MixtureSide& side, std::size_t L);

/// Windows of a batch, and their bytes.
inline constexpr std::size_t windows_of_side = 16, bytes_of_window = 64;

inline constexpr std::array kinds_of_bytes = {"a to z", "A to Z", "0 to 9", "space", "others"};

inline constexpr std::array<std::size_t, 3> tokens_in_a_row = {1, 8, 64};

struct MixtureRun {
  double held_out, seconds_a_step, dropped;
  Tensor<2> loads;     // [L, E], means over the last 50 steps
  Tensor<2> of_kinds;  // [E, kinds of bytes]: the share of each kind's choices, in the last layer
  Tensor<1> touched;  // how many different experts so many tokens in a row choose there, on average
};
/// Trains with a learning rate of up to 0.008 and shows its progress.
MixtureRun train_side(const MixtureSide& side, const SplitText& text, std::size_t L,
                      std::size_t steps, std::uint64_t seed);

}  // namespace t2t
