#include "18_experiments/muon/muon.hpp"

#include <algorithm>
#include <cmath>

#include "shapes.hpp"

namespace t2t {

bool is_moved_by_muon(const TensorInfo& info) {
  return info.role == Role::matrix || info.role == Role::into_stream;
}

float muon_scale(std::size_t out, std::size_t in) {
  return 0.2f * std::sqrt(float(std::max(out, in)));
}

double muon_step(const Muon& muon, float rate, Matrix w, ConstMatrix g, Tensor<2>& momentum) {
  expect_shape("g", g, {w.rows, w.cols});
  expect_shape("momentum", momentum, {w.rows, w.cols});
  expect(muon.momentum >= 0 && muon.momentum < 1, "momentum, the share that is kept",
         "at least 0 and below 1", muon.momentum);
  const Tensor<2> gradient = copy_of(g);                             // [out, in]
  const Tensor<2> kept = muon.momentum * momentum + gradient;        // [out, in]
  const Tensor<2> ahead = gradient + muon.momentum * kept;           // [out, in]  Nesterov's
  const Tensor<2> direction = newton_schulz(ahead, muon.iteration);  // [out, in]
  momentum = kept;

  // The decay shrinks the weights themselves, and not through the gradient, whose size is lost.
  const float scale = muon_scale(w.rows, w.cols);
  double moved = 0;
  for (std::size_t o = 0; o < w.rows; ++o)
    for (std::size_t i = 0; i < w.cols; ++i) {
      float& weight = w.row(o)[i];
      const float move = rate * (scale * direction(o, i) + muon.decay * weight);
      weight -= move;
      moved += double(move) * double(move);
    }
  return moved;
}

}  // namespace t2t
