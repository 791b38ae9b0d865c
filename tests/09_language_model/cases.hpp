// The models that chapter 09's tests use, with the logits that PyTorch gives for them.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "03_rope/scaling/rope_scaling.hpp"
#include "09_language_model/fast/forward.hpp"
#include "files/npy.hpp"
#include "support/hashed_weights.hpp"
#include "support/lists.hpp"
#include "support/refuses.hpp"

namespace t2t {

struct Case {
  std::string name;
  Config config;
  double largest;  // of the logits that are wanted

  std::string file(const char* of) const { return T2T_FIXTURES "/" + name + of + ".npy"; }
  Ids ids() const { return load_npy_ints(file("_ids")); }
  Tensor<2> want() const { return load_npy<2>(file("_logits")); }
  ModelWeights weights() const {
    ModelWeights weights = room_for(config);
    for_each_tensor(weights, config, [](const TensorInfo& info, auto& tensor) {
      fill_numbers(info, info.layer ? 100 * std::uint32_t(*info.layer + 1) : 0, tensor);
    });
    return weights;
  }
  Model model() const { return Model(config, weights()); }

  // As in chapter 08 a block keeps K·u of the stream's size, u being 2^-24; errors of L blocks are
  // of either sign, the norm passes a relative error on, and the head sums C products more.
  double bound(double largest) const {
    const BlockSettings& s = config.block;
    const double K = 4 * std::sqrt(s.C) + 4 * std::sqrt(s.D) + std::sqrt(config.T_max) +
                     std::sqrt(s.H * s.D) + std::sqrt(s.F);
    return (std::sqrt(config.L) * K + std::sqrt(s.C)) * 0x1p-24 * largest;
  }
};

inline Case llama() {
  Config config{.block = {.C = 30, .H = 6, .G = 2, .D = 8, .F = 37}, .L = 3, .V = 61, .T_max = 29};
  config.block.theta = 500;
  return {"llama", config, 4.9};
}
/// The same, but layers 0 and 2 have windows of 5 keys and of 1, and layer 1 turns 8 times slower.
inline Case mixed() {
  Case c = llama();
  c.name = "mixed", c.largest = 5.2;
  c.config.layers = {c.config.block, c.config.block, c.config.block};
  c.config.layers[0].window = 5, c.config.layers[2].window = 1;
  c.config.layers[1].frequencies = linear_scaling(rope_frequencies(8, 500), 8);
  return c;
}
inline Case gpt2() {
  Config c = resized(preset("gpt2"), {.C = 24, .L = 3, .H = 4, .G = 4, .V = 53, .T_max = 17});
  return {"gpt2", c, 8.1};
}

inline Tensor<2> last_row(const Tensor<2>& x) {
  return xt::view(x, xt::range(x.shape(0) - 1, x.shape(0)), xt::all());
}
inline Matrix one_row(Tensor<1>& x) { return {x.data(), 1, x.size(), x.size()}; }

}  // namespace t2t
