// Latent attention in the absorbed form: the queries are taken to the latent, instead of the latent
// to keys and values.
//
//   q̃_h = qⁿ_h·U_h         score = f·(q̃_h·c + qʳ_h·kʳ)       because qⁿ·(U·c) = (Uᵀ·qⁿ)·c
//   z_h = Σ over s of P_s·c_s        out_h = z_h·Y_hᵀ         because Σ P_s·(Y·c_s) = Y·Σ P_s·c_s
//
// All heads read the same rows (c, kʳ): it is chapter 06's attention with G = 1, with keys of K + R
// elements and values that are the first K elements of the same row. latent_attention.hpp has the
// plain form, its oracle; fast/latent_decode.hpp
// runs it in place for one token. DeepSeek-AI 2024,
// "DeepSeek-V2", section 2.1.2.
#pragma once

#include "23_latent/latent_attention.hpp"
#include "tensor.hpp"

namespace t2t {

/// Each head's query for the latent with its rotated part, (q̃, qʳ): [T, H·(K+R)]. Throws
/// std::invalid_argument when shapes disagree, and as expect_latent does.
Tensor<2> absorb_queries(const Tensor<2>& q,      // [T, H·(N+R)]
                         const Tensor<2>& w_kvb,  // [H·(N+Dv), K]
                         const LatentSettings& settings);

/// Each head's output, made from its mean of the latents: [T, H·Dv]. Throws as absorb_queries does.
Tensor<2> expand_outputs(const Tensor<2>& z,      // [T, H·K]
                         const Tensor<2>& w_kvb,  // [H·(N+Dv), K]
                         const LatentSettings& settings);

/// Attention in the absorbed form: [T, H·Dv], as attend_latent. Throws as that does.
Tensor<2> attend_absorbed(const Tensor<2>& q,     // [T, H·(N+R)]
                          const Tensor<2>& rows,  // [S, K+R]
                          const Tensor<2>& w_kvb, const LatentSettings& settings);

}  // namespace t2t
