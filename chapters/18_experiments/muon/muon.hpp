// Muon: how a matrix of weights moves once its gradient is known. Where AdamW treats a matrix as a
// list of elements, Muon gives all of its directions a step of about the same length.
//
//   m ← μ·m + g        u = g + μ·m        w ← w − rate·(0.2·√max(out, in)·NS(u) + decay·w)
//
// NS is newton_schulz.hpp's iteration, and g + μ·m is Nesterov's momentum. NS(u) forgets the size
// of u. The scale makes up for that: with it, the root mean square of a step's elements is about
// 0.2·rate for a matrix of any shape whose singular values come near 1, and AdamW's usual rates
// fit. Jordan et al. 2024; the scale and the decay are of Liu et al. 2025, "Muon is Scalable for
// LLM Training". muon_trainer.hpp trains with it.
#pragma once

#include <cstddef>

#include "08_block/block_weights.hpp"
#include "18_experiments/muon/newton_schulz.hpp"

namespace t2t {

struct Muon {
  float momentum = 0.95f;  // μ, the share of the momentum that is kept
  float decay = 0.1f;
  NewtonSchulz iteration = {};
};

/// Whether Muon moves a tensor: the matrices inside of blocks, those of each expert alone. AdamW
/// moves the embedding, the positions, the head, routers, gains and biases.
bool is_moved_by_muon(const TensorInfo& info);

/// 0.2·√max(out, in).
float muon_scale(std::size_t out, std::size_t in);

/// Moves one matrix. Returns the sum of the squares of all moves. Throws std::invalid_argument when
/// shapes differ, the momentum's share is not in [0, 1), and as newton_schulz does.
double muon_step(const Muon& muon, float rate,
                 Matrix w,              // [out, in]
                 ConstMatrix g,         // [out, in]
                 Tensor<2>& momentum);  // [out, in], zeros before the first step

}  // namespace t2t
