// The backward pass of latent attention, in both forms. ds is the gradient of the scores q·k, the
// factor f included.
//
//   plain     chapter 13's attention for each head's q, k and v, and then
//             dc += dkⁿ·U + dv·Y       dU = dkⁿᵀ·c        dY = dvᵀ·c        dkʳ += dsᵀ·qʳ
//   absorbed  dz = do·Y      dY = doᵀ·z      dP = dz·cᵀ      ds = f·softmax's backward of dP
//             dq̃ = ds·c      dqⁿ = dq̃·Uᵀ     dU = qⁿᵀ·dq̃     dqʳ = ds·kʳ
//             dkʳ += dsᵀ·qʳ  dc += Pᵀ·dz + dsᵀ·q̃
//
// c and kʳ serve all heads, so their gradients are sums over heads. Then qʳ and kʳ are rotated back
// by the negative angle, and both norms and all projections follow as in chapter 13. The two forms
// compute the same gradients; the tests hold them against each other and against differences.
#pragma once

#include "23_latent/latent_attention.hpp"
#include "tensor.hpp"

namespace t2t {

/// The gradients of what attend_latent and attend_absorbed read.
struct LatentCoreGradients {
  Tensor<2> q;      // [T, H·(N+R)]
  Tensor<2> rows;   // [S, K+R]
  Tensor<2> w_kvb;  // [H·(N+Dv), K]
};

/// Each throws std::invalid_argument when dheads is not [T, H·Dv], and as expect_attendable does.
LatentCoreGradients attend_latent_backward(const Tensor<2>& q, const Tensor<2>& rows,
                                           const Tensor<2>& w_kvb, const LatentSettings& settings,
                                           const Tensor<2>& dheads);  // [T, H·Dv]
LatentCoreGradients attend_absorbed_backward(const Tensor<2>& q, const Tensor<2>& rows,
                                             const Tensor<2>& w_kvb, const LatentSettings& settings,
                                             const Tensor<2>& dheads);  // [T, H·Dv]

/// The gradients of the whole layer. A weight's gradient has the weight's shape.
struct LatentGradients {
  Tensor<2> x;  // [T, C]
  LatentWeights weights;
};
/// Which form computes the middle part.
using LatentCoreBackward = LatentCoreGradients (*)(const Tensor<2>&, const Tensor<2>&,
                                                   const Tensor<2>&, const LatentSettings&,
                                                   const Tensor<2>&);

/// The backward pass of latent_attention. Throws std::invalid_argument when dy is not [T, C], and
/// as latent_attention does.
LatentGradients latent_backward(const Tensor<2>& x,  // [T, C]
                                const LatentWeights& weights, const LatentSettings& settings,
                                const RopeTable& rope,
                                const Tensor<2>& dy,  // [T, C]
                                LatentCoreBackward core = attend_latent_backward);

}  // namespace t2t
