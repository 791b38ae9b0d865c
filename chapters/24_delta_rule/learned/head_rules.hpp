// The rules that recall compares, as values for the layer. Each reads the same q, k and v, with q
// of length 1/√D and k of length 1:
//
//   attention   softmax of 16·(unit q)·k over all earlier tokens and its own
//   window      the same over the last W tokens
//   linear      StateRule::add without a decay: S += k·vᵀ
//   delta       the gated delta rule
//
// Products of unit vectors are at most 1, and softmax of such scores is almost flat. The factor 16
// lets it choose: memory/recall.hpp has the same one.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "24_delta_rule/layer/delta_layer_backward.hpp"

namespace t2t {

enum class Mixer { attention, window, linear, delta };

/// The tokens that a window has.
constexpr std::size_t recall_window = 16;

/// Throws std::invalid_argument unless D and Dv are equal, as attention's formula wants, and as
/// expect_delta_layer does.
HeadRule head_rule(Mixer mixer, const DeltaLayerSettings& settings);

/// The elements that a layer keeps of S tokens, without the convolution's.
std::size_t kept_elements(Mixer mixer, const DeltaLayerSettings& settings, std::size_t S);

/// The rules of a model's two layers by its name: attention, window, linear, delta, or hybrid,
/// which is delta and then attention. Throws std::invalid_argument for another name.
std::vector<Mixer> mixers_of(const std::string& kind);

}  // namespace t2t
