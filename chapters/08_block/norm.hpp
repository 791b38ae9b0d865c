// A block's norm: RMSNorm or LayerNorm of chapter 02, as a setting chooses.
#pragma once

#include "tensor.hpp"

namespace t2t {

enum class Norm { rms, layer };

struct NormWeights {
  Tensor<1> gain;  // [C]
  Tensor<1> bias;  // [C], LayerNorm only
};

/// The reference implementation, written as the papers' formula: returns rms_norm or layer_norm of
/// x, [T, C]. Throws as they do.
Tensor<2> norm(const Tensor<2>& x,  // [T, C]
               const NormWeights& weights, Norm kind, float eps);

/// The same, written to y. Throws as rms_norm_rows and layer_norm_rows do.
void norm_rows(ConstMatrix x,  // [T, C]
               const NormWeights& weights, Norm kind, float eps,
               Matrix y);  // [T, C], may be x

}  // namespace t2t
