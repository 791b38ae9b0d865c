// What layers with a state store and compute beside attention, by formula.
//
//   a token and head, one step     7·D·Dv operations, and the state read and written once
//   in chunks of c                 about 4·c·D + 3·c·Dv + 6·D·Dv operations, as matrix products
//
// A hybrid has some layers of attention, whose caches grow, and otherwise states, which do not.
#pragma once

#include <cstddef>

#include "24_delta_rule/layer/delta_layer.hpp"

namespace t2t {

/// The sizes of Qwen3-Next's layers, as stored: 32 heads of 128 · 128 and a convolution over
/// 2·16·128 + 32·128 channels; its attention layers have 2 heads of keys of width 256.
struct HybridSizes {
  std::size_t layers = 48, every = 4;  // one layer in `every` attends
  std::size_t H = 32, D = 128, Dv = 128;
  std::size_t channels = 8192, W = 4;
  std::size_t G = 2, attention_D = 256;
};

/// Bytes of all layers for one sequence of S tokens: states in floats, caches at 2 bytes per
/// element. `every` as in the sizes; 1: all layers attend; 0: none does. Throws
/// std::invalid_argument unless `every` is 0 or divides the number of layers.
std::size_t state_bytes(const HybridSizes& sizes, std::size_t every);
std::size_t cache_bytes(const HybridSizes& sizes, std::size_t every, std::size_t S);

std::size_t step_operations(std::size_t D, std::size_t Dv);
std::size_t chunk_operations(std::size_t D, std::size_t Dv, std::size_t c);

}  // namespace t2t
