// The gradients of gated linear attention with a gate for each channel, in two scans that store no
// state of any token.
//
//   forward     S_t as before                                  dq_t = S_t·do_t
//   backward    dS = e^(g of the next token) ⊙ dS + q_t·do_tᵀ   dk_t = dS·v_t      dv_t = dSᵀ·k_t
//   dg_t        = rows of (dS_T ⊙ S_T) + Σ over s ≥ t of (q_s ⊙ dq_s − k_s ⊙ dk_s)
//
// The last line needs neither scan's matrices. G_i, the running sum of g, appears in q_i ⊙ e^(G_i)
// and in k_i ⊙ e^(−G_i) alone, and its gradient is therefore q_i ⊙ dq_i − k_i ⊙ dk_i; g_t is part
// of all G_i from t on. S_T is the last state, and dS_T its gradient. Yang et al. 2023, "Gated
// Linear Attention Transformers with Hardware-Efficient Training", section 4.
#pragma once

#include "24_delta_rule/channels/channel_gates.hpp"

namespace t2t {

struct ChannelGradients {
  ChannelTokens tokens;
  Tensor<2> state;  // [D, Dv], of the state before the first token
};

/// `state` is the state before the first token, `dlast` the gradient of the one after the last.
/// Throws std::invalid_argument when shapes disagree, and as expect_channels does.
ChannelGradients channel_backward(const ChannelTokens& tokens,
                                  const Tensor<2>& state,   // [D, Dv]
                                  const Tensor<2>& dout,    // [T, Dv]
                                  const Tensor<2>& dlast);  // [D, Dv]

}  // namespace t2t
