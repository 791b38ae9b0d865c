// Three ways to tell attention where a token stands, all older than or beside RoPE (rope.hpp).
//
//   sinusoids  x[t,c] += sin or cos (t · 10000^(−2i/C)) for c = 2i or 2i + 1   Vaswani et al. 2017
//   learned    x[t,c] += table[t,c], trained, and ending where the table ends  GPT-2
//   ALiBi      score[h,t,s] −= slope[h] · (t − s), nothing added to x          Press et al. 2022
//
// The first two change a token's vector once, before the first layer; ALiBi and RoPE act inside
// every attention. Chapter 09 adds the learned table when a model is of GPT-2's kind. Press et al.:
// "Train Short, Test Long".
#pragma once

#include <cstddef>

#include "random.hpp"
#include "tensor.hpp"

namespace t2t {

/// Row t is the fixed pattern of position t: [S, C].
/// Throws std::invalid_argument when C is odd or 0.
Tensor<2> sinusoidal_positions(std::size_t S, std::size_t C);

/// A table to be trained, begun as GPT-2 begins it, from N(0, 0.01²): [S, C].
Tensor<2> learned_positions(std::size_t S, std::size_t C, Random& random);

/// The formula: row t of x stands at position start + t and gets that row of the table added, [T,
/// C]. Throws std::invalid_argument when the widths differ or the table ends before start + T.
Tensor<2> with_positions(const Tensor<2>& x,      // [T, C]
                         const Tensor<2>& table,  // [S, C]
                         std::size_t start);

/// The same in place. Otherwise as with_positions.
void add_positions(Matrix x,           // [T, C]
                   ConstMatrix table,  // [S, C]
                   std::size_t start);

/// How steeply each head forgets: 2^(−8/H), 2^(−16/H) … 2^(−8) when H is a power of two. Otherwise
/// the slopes of the next lower power, then every second one of the next higher: [H].
/// Throws std::invalid_argument when H is 0.
Tensor<1> alibi_slopes(std::size_t H);

/// What ALiBi adds to the scores of T queries, the last of S tokens: −slope · distance for a key at
/// or before its query, −infinity for a later one (so it is the causal mask too): [H, T, S].
/// Throws std::invalid_argument when T is more than S.
Tensor<3> alibi_biases(std::size_t H, std::size_t T, std::size_t S);

}  // namespace t2t
