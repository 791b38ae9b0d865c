// The norm of a block: one of chapter 02's two, by name, so that a setting can choose.
#pragma once

#include "tensor.hpp"

namespace t2t {

enum class Norm { rms, layer };

struct NormWeights {
  Tensor<1> gain;  // [C]
  Tensor<1> bias;  // [C], LayerNorm only
};

/// The formula: rms_norm or layer_norm, [T, C]. Throws as they do.
Tensor<2> norm(const Tensor<2>& x,  // [T, C]
               const NormWeights& weights, Norm kind, float eps);

/// The same by rows. Throws as rms_norm_rows and layer_norm_rows do.
void norm_rows(ConstMatrix x,  // [T, C]
               const NormWeights& weights, Norm kind, float eps,
               Matrix y);  // [T, C], may be x

}  // namespace t2t
