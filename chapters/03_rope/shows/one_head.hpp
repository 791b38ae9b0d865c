// A minimal attention layer that can be given positions, for this chapter's program. Chapter 04
// teaches attention.
//
//   softmax(q·kᵀ/√C)·v,  q, k, v = x·Wqᵀ, x·Wkᵀ, x·Wvᵀ;  every row attends to every row, no mask
#pragma once

#include <cmath>

#include "03_rope/fast/rope_rows.hpp"
#include "03_rope/positions/positions.hpp"
#include "linalg.hpp"

namespace t2t {

enum class Positions { none, sinusoids_added, table_added, qk_rotated, qkv_rotated };

struct OneHead {
  Tensor<2> wq, wk, wv;  // [C, C]
  /// [S, C], untrained; 50 times as large as GPT-2's at initialization, as the words' vectors here
  /// are too.
  Tensor<2> learned;

  OneHead(std::size_t C, Random& random) {
    for (Tensor<2>* w : {&wq, &wk, &wv}) *w = random.normal<2>({C, C}, 1 / std::sqrt(float(C)));
    Random of_its_own(1);  // so that the other draws stay the same without this table
    learned = 50 * learned_positions(1024, C, of_its_own);
  }

  Tensor<2> run(Tensor<2> x,  // [T, C]
                Positions positions, std::size_t start = 0) const {
    const std::size_t T = x.shape(0), C = x.shape(1);
    if (positions == Positions::sinusoids_added)
      add_positions(x, sinusoidal_positions(start + T, C), start);
    if (positions == Positions::table_added) add_positions(x, learned, start);
    Tensor<2> q = matmul_bt(x, wq), k = matmul_bt(x, wk), v = matmul_bt(x, wv);  // [T, C] each

    const RopeTable table = rope_table(start + T, rope_frequencies(C));
    const auto rotate = [&](Tensor<2>& y) { rope_rows(y, C, table, start, Pairing::halves); };
    if (positions == Positions::qk_rotated || positions == Positions::qkv_rotated)
      rotate(q), rotate(k);
    if (positions == Positions::qkv_rotated) rotate(v);

    Tensor<2> weights = xt::exp(matmul_bt(q, k) / std::sqrt(float(C)));  // [T, T]
    const Tensor<1> sums = xt::sum(weights, {1});                        // [T]
    weights /= as_column(sums);
    return matmul(weights, v);
  }
};

}  // namespace t2t
