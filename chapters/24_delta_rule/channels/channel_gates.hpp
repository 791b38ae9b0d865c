// Gated linear attention whose gate is a vector: each channel of the keys fades at its own rate.
//
//   S = e^g ⊙ S + k·vᵀ        o = Sᵀ·q           g [D], at most 0: row d of S fades by e^(g_d)
//
// In a chunk of c tokens with running sums G [c, D], decays are no factor of Q·Kᵀ any more:
//
//   P_ij = Σ over d of q_id·k_jd·e^(G_id − G_jd) for j ≤ i            and 0 for j > i
//   O = (Q ⊙ e^G)·S₀ + P·V            S_c = e^(G_c) ⊙ S₀ + (K ⊙ e^(G_c − G))ᵀ·V
//
// P is (Q ⊙ e^G)·(K ⊙ e^(−G))ᵀ on paper, but e^(−G) overflows. The chunk is therefore cut into
// blocks. For the queries of block I and all earlier keys, both exponents are taken from G of the
// last token before the block, and neither is above 0: that is a matrix product. Within a block, P
// is computed element by element. Yang et al. 2023, "Gated Linear Attention Transformers with
// Hardware-Efficient Training". channel_backward.hpp goes back through it; delta_rule.hpp has one
// gate for a head.
#pragma once

#include "tensor.hpp"

namespace t2t {

/// What one head reads of T tokens.
struct ChannelTokens {
  Tensor<2> q, k;  // [T, D]
  Tensor<2> v;     // [T, Dv]
  Tensor<2> g;     // [T, D], logarithms of the decays, finite and at most 0

  std::size_t T() const { return q.shape(0); }
  std::size_t D() const { return q.shape(1); }
  std::size_t Dv() const { return v.shape(1); }
};

/// Throws std::invalid_argument, naming the value, when shapes disagree or a width is 0, and,
/// naming the token and the channel, for a g above 0 or not finite: a difference of two sums that
/// are −infinity would be NaN.
void expect_channels(const ChannelTokens& tokens, ConstMatrix state);  // [D, Dv]

/// All tokens, one after the other: o, [T, Dv]. The state is what earlier tokens left, and becomes
/// what later ones need. Throws as expect_channels does, before the state is changed.
Tensor<2> channel_recurrence(const ChannelTokens& tokens, Tensor<2>& state);  // [D, Dv]

/// The same up to rounding, `chunk` tokens at a time, in blocks of `block`. The last chunk and the
/// last block may be shorter. Throws as expect_channels does, and when chunk or block is 0.
Tensor<2> channel_chunks(const ChannelTokens& tokens, std::size_t chunk, std::size_t block,
                         Tensor<2>& state);  // [D, Dv]

}  // namespace t2t
