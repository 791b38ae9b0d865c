// Models for a device, and how far from the formula's their logits may be.
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "09_language_model/fast/model.hpp"
#include "support/hashed_weights.hpp"
#include "support/kernels/device_numbers.hpp"
#include "support/lists.hpp"

namespace t2t::device_models {

/// Sizes that fill no tile.
inline Config config_of(Pairing pairing, bool tied) {
  Config config{
      .block = {.C = 72, .H = 6, .G = 2, .D = 64, .F = 104}, .L = 2, .V = 101, .T_max = 300};
  config.block.pairing = pairing, config.tied = tied;
  return config;
}

/// A model whose matrices hold numbers that a bf16 holds: the device has the same ones.
inline Model model_of(const Config& config) {
  ModelWeights weights = room_for(config);
  for_each_tensor(weights, config, [](const TensorInfo& info, auto& tensor) {
    fill_numbers(info, info.layer ? 100 * std::uint32_t(*info.layer + 1) : 0, tensor);
    if constexpr (std::is_same_v<decltype(tensor), Weight&>)
      if (info.size() > 0) tensor = rounded(tensor.floats());
  });
  return Model(config, std::move(weights));
}

inline Ids some_ids(std::size_t count, int seed = 1) {
  Ids ids;
  for (std::size_t t = 0; t < count; ++t) ids.push_back(int(t * t * 7 + t * 13 + seed) % 101);
  return ids;
}

// A rounding to bf16 moves a number by at most δ = 2^-8 of it, and by δ/√3 in the root mean square
// if every move up to δ is equally likely. The moves are independent of each other, so a product's
// sum is moved by about the same share of its size as the numbers that it adds up. What a layer
// adds to the stream went through at most 10 such roundings: of the norm, q, k, v, weights and
// heads, where a score of size 2 passes on those of q and k twice, and of the norm and hidden.
// Moves of several kinds add up as the root of their number, and the final norm is one more. A
// logit's move therefore has this standard deviation, relative to the size of all logits; among ten
// thousand logits, none should be 6 of them off. float32's own roundings are 2^16 times smaller.
inline double bound_of_roundings(double kinds, const Tensor<2>& logits) {
  double squares = 0;
  for (const float logit : logits) squares += double(logit) * logit / double(logits.size());
  return 6 * std::sqrt(kinds) * u_bf16 / std::sqrt(3.0) * std::sqrt(squares);
}

inline double bound(const Model& model, const Tensor<2>& logits) {
  return bound_of_roundings(10 * double(model.config().L) + 1, logits);
}

/// With packed weights, a prompt's weights are rounded, too: those that make q, k, v, the heads'
/// sum, gate, up and the hidden sum, 7 of a layer, with q's and k's passed on twice, and the
/// head's.
inline double bound_with_packed_weights(const Model& model, const Tensor<2>& logits) {
  return bound_of_roundings(19 * double(model.config().L) + 2, logits);
}

}  // namespace t2t::device_models
