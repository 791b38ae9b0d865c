// What a state remembers: keys are written with values, and then each key is read. No training is
// needed, since the keys and values are random.
//
//   linear   S += k·vᵀ              read: Sᵀ·k
//   delta    S += k·(v − Sᵀ·k)ᵀ     read: Sᵀ·k                (β = 1, no decay)
//   softmax  keeps all keys         read: Σ softmax(16·k·k_s)·v_s
//
// A reading counts as right if, of all values ever written, its nearest by angle is the last one
// written at this key. Schlag et al. 2021 ask a similar question of trained models.
#pragma once

#include <cstddef>
#include <cstdint>

namespace t2t {

enum class Memory { linear, delta, softmax };

struct RecallTask {
  std::size_t keys;        // random, of length 1
  std::size_t times = 1;   // how often each key is written, each time with another value
  std::size_t D = 32;      // width of keys and of values
  std::size_t draws = 40;  // of keys and values, over which the share is taken
};

/// The share of all readings that are right. It draws from the seed alone and computes in float64.
/// Throws std::invalid_argument unless all numbers of the task are at least 1.
double recall_share(Memory memory, const RecallTask& task, std::uint64_t seed);

}  // namespace t2t
