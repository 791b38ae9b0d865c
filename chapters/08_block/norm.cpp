#include "08_block/norm.hpp"

#include "02_normalization/fast/layer_norm_rows.hpp"
#include "02_normalization/fast/rms_norm_rows.hpp"
#include "02_normalization/layer_norm.hpp"
#include "02_normalization/rms_norm.hpp"

namespace t2t {

Tensor<2> norm(const Tensor<2>& x, const NormWeights& weights, Norm kind, float eps) {
  return kind == Norm::rms ? rms_norm(x, weights.gain, eps)
                           : layer_norm(x, weights.gain, weights.bias, eps);
}

void norm_rows(ConstMatrix x, const NormWeights& weights, Norm kind, float eps, Matrix y) {
  if (kind == Norm::rms)
    rms_norm_rows(x, row(weights.gain), eps, y);
  else
    layer_norm_rows(x, row(weights.gain), row(weights.bias), eps, y);
}

}  // namespace t2t
