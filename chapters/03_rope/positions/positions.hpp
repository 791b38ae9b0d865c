// Ways to give attention each token's position, other than RoPE (rope.hpp).
//
// Two change a token's vector once, before the first layer:
//   sinusoids  x[t,c] += sin or cos (t · 10000^(−2i/C)) for c = 2i or 2i + 1   Vaswani et al. 2017
//   learned    x[t,c] += table[t,c], a table that is trained                   GPT-2
// Three add a bias to the score of query t and key s in every attention layer, before softmax:
//   ALiBi      −slope[h] · (t − s)                                             Press et al. 2022
//   T5         table[bucket(t − s), h], a table that is trained                Raffel et al. 2019
//   Shaw       q[t,h] · vector[min(t − s, K)] / √D, vectors that are trained   Shaw et al. 2018
//
// All three return the biases in one form, [H, T, S]: the T queries are the last of S tokens, and a
// key after its query gets −infinity, so the biases are also the causal mask. Chapter 04 adds
// biases to its scores. Chapter 09 adds the learned table in models like GPT-2.
#pragma once

#include <cstddef>

#include "random.hpp"
#include "tensor.hpp"

namespace t2t {

/// Row s is the fixed pattern of position s: [S, C].
/// Throws std::invalid_argument when C is odd or 0.
Tensor<2> sinusoidal_positions(std::size_t S, std::size_t C);

/// A table at the start of its training, drawn as GPT-2's is, from N(0, 0.01²): [S, C].
Tensor<2> learned_positions(std::size_t S, std::size_t C, Random& random);

/// The reference implementation, written as the papers' formula: row t of x is at position
/// start + t, and that row of the table is added to it: [T, C]. Throws std::invalid_argument when
/// the widths differ, and as rope.hpp's expect_positions does.
Tensor<2> with_positions(const Tensor<2>& x,      // [T, C]
                         const Tensor<2>& table,  // [S, C]
                         std::size_t start);

/// The same in place. Throws as with_positions does.
void add_positions(Matrix x,           // [T, C]
                   ConstMatrix table,  // [S, C]
                   std::size_t start);

/// How fast each head's scores fall with distance: 2^(−8/H), 2^(−16/H) … 2^(−8) when H is a power
/// of two. Otherwise the slopes for the next lower power of two, followed by every second slope for
/// the next higher one: [H]. Throws std::invalid_argument when H is 0.
Tensor<1> alibi_slopes(std::size_t H);

/// −slope · distance: [H, T, S]. Throws std::invalid_argument when H is 0 or T is more than S.
Tensor<3> alibi_biases(std::size_t H, std::size_t T, std::size_t S);

/// T5's bucket of a distance ≥ 0 in causal attention. With exact = buckets / 2: distances below
/// exact have a bucket each; the other buckets divide exact … max_distance − 1 logarithmically; the
/// last bucket also takes all distances from max_distance on. T5 uses 32 buckets and a max_distance
/// of 128. Throws std::invalid_argument when buckets is below 2 or max_distance is not above exact.
std::size_t t5_bucket(std::size_t distance, std::size_t buckets, std::size_t max_distance);

/// The table's element for each head and bucket: [H, T, S]. One table serves all layers.
/// Throws std::invalid_argument as t5_bucket does, and when T is more than S.
Tensor<3> t5_biases(const Tensor<2>& table,  // [buckets, H]
                    std::size_t T, std::size_t S, std::size_t max_distance = 128);

/// The product of each query with the vector of the distance, divided by √D: [H, T, S]. Distances
/// above K share vector K; all heads share the vectors. (The paper also adds such vectors to the
/// values, and finds that the keys' vectors may suffice.) Throws std::invalid_argument when
/// there are no vectors, D is 0, q's width is not a multiple of D, or T is more than S.
Tensor<3> shaw_biases(ConstMatrix q,        // [T, H·D]
                      ConstMatrix vectors,  // [K + 1, D]
                      std::size_t S);

}  // namespace t2t
