// The feed-forward network as a model runs it: in memory that its caller keeps. The tests compare
// it with the formula in feed_forward.hpp.
//
//   gated:  y = (act(x·W_gateᵀ) · (x·W_upᵀ)) · W_downᵀ
//   plain:  y = act(x·W_upᵀ + b_up) · W_downᵀ + b_down
//
// Chapter 08's block calls it; chapter 14 calls it for each expert.
#pragma once

#include <functional>

#include "07_swiglu/fast/feed_forward_weights.hpp"

namespace t2t {

/// Memory for gate and up, for calls of up to max_rows tokens and networks of width F or less,
/// which use the first elements of each row. The scratch of a gated network serves a plain one too.
/// The scratch of a plain network has a gate of [0, 0], and a gated network refuses it. F may be 0,
/// for a model whose blocks have other networks.
struct FeedForwardScratch {
  Tensor<2> gate;  // [max_rows, F], only if gated
  Tensor<2> up;    // [max_rows, F]

  FeedForwardScratch(std::size_t max_rows, std::size_t F, Activation activation);
};

/// A function that is called with gate and up, [T, F], before act(gate) · up overwrites up. In a
/// plain network gate is [0, 0] and up has its bias; act(up) then overwrites it.
using SeeGateAndUp = std::function<void(ConstMatrix gate, ConstMatrix up)>;

/// Written to y. It works in the scratch and allocates nothing. Afterwards the hidden values,
/// act(gate) · up or act(up), are the first T rows and F columns of scratch.up. y may be x itself.
/// Throws as feed_forward does, and when the scratch is too small or y is not [T, C]. Everything is
/// checked before anything is written.
void feed_forward_rows(ConstMatrix x,  // [T, C]
                       const FeedForwardWeights& weights, Activation activation,
                       FeedForwardScratch& scratch,
                       Matrix y,  // [T, C]
                       const SeeGateAndUp& see = {});

}  // namespace t2t
