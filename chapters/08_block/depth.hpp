// Many blocks on top of each other, for the show: how large the stream grows, and what is left of a
// change that was made far below. Chapter 09 stacks blocks for good.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "02_normalization/rms_norm.hpp"
#include "08_block/cached_attention.hpp"

namespace t2t {

inline double root_mean_square(ConstMatrix x) {
  double sum = 0;
  for (std::size_t t = 0; t < x.rows; ++t)
    for (const float value : x.row(t)) sum += double(value) * value;
  return std::sqrt(sum / double(x.rows * x.cols));
}

/// How much of x is not common to all its tokens: 1 when their mean is 0, 0 when they are equal.
inline double spread(const Tensor<2>& x) {
  double apart = 0, all = 0;
  for (std::size_t c = 0; c < x.shape(1); ++c) {
    double mean = 0;
    for (std::size_t t = 0; t < x.shape(0); ++t) mean += x(t, c) / double(x.shape(0));
    for (std::size_t t = 0; t < x.shape(0); ++t) {
      apart += (x(t, c) - mean) * (x(t, c) - mean);
      all += double(x(t, c)) * x(t, c);
    }
  }
  return std::sqrt(apart / all);
}

/// How layers are joined. The last is no one's practice: each part's result takes x's place.
enum class Joined { pre_norm, post_norm, without_sums };

class Stack {
 public:
  Stack(BlockSettings settings, Joined joined, const std::vector<BlockWeights>& layers,
        std::size_t T)
      : joined_(joined),
        layers_(layers),
        attention_(settings, T, T),
        scratch_(settings, T),
        slots_{.attention = std::ref(attention_)} {
    if (joined == Joined::post_norm) settings.norm_place = NormPlace::after;
    blocks_.reserve(layers.size());
    // The caches hold one layer at a time, so each block calls itself the first.
    for (const BlockWeights& weights : layers) blocks_.emplace_back(settings, weights);
  }

  /// x after layer l. [T, C]
  Tensor<2> layer(std::size_t l, Tensor<2> x, const Trace& trace = {}) {
    Tensor<2> said;  // what attention made, [T, C]
    attention_.truncate(0);
    block_rows(x, blocks_[l], slots_, scratch_,
               [&](Part part, std::size_t layer, ConstMatrix value) {
                 if (trace) trace(part, layer, value);
                 if (part == Part::attention) said = copy_of(value);
               });
    if (joined_ != Joined::without_sums) return x;
    const BlockSettings& settings = blocks_[l].settings();
    return feed_forward(rms_norm(said, layers_[l].feed_forward_norm.gain, settings.eps),
                        layers_[l].feed_forward, settings.activation);
  }

  /// What layer l makes of a small change of x: its derivative times change, from two runs on
  /// either side of x. [T, C]
  Tensor<2> changed(std::size_t l, const Tensor<2>& x, const Tensor<2>& change) {
    const float step = float(0.01 * root_mean_square(x) / root_mean_square(change));
    return (layer(l, x + step * change) - layer(l, x - step * change)) / (2 * step);
  }

 private:
  Joined joined_;
  const std::vector<BlockWeights>& layers_;
  std::vector<Block> blocks_;
  CachedAttention attention_;
  BlockScratch scratch_;
  BlockSlots slots_;
};

/// What is measured after some layer of a stack.
struct Depth {
  double size;      // root mean square of x
  double spread;    // how much of it differs from token to token
  double felt;      // how large a change of the input has become, as a share of x
  double straight;  // what of it came up through the sums and norms alone, as a share of x
};

/// Runs text through layers so joined, and with it a random change of the text. Index l: after l
/// layers.
inline std::vector<Depth> depths(Joined joined, const Tensor<2>& text,
                                 const BlockSettings& settings,
                                 const std::vector<BlockWeights>& layers, Random random) {
  const std::size_t T = text.shape(0), C = text.shape(1);
  Stack stack(settings, joined, layers, T);
  Tensor<2> x = text, change = random.normal<2>({T, C});  // [T, C]
  const double size_0 = root_mean_square(x);
  double grown = 1, straight = joined == Joined::without_sums ? 0 : 1;
  std::vector<Depth> after = {{size_0, spread(x), 1, straight}};
  for (std::size_t l = 0; l < layers.size(); ++l) {
    Tensor<2> moved = stack.changed(l, x, change);  // [T, C]
    grown *= root_mean_square(moved) / root_mean_square(change);
    change = moved / float(root_mean_square(moved));
    x = stack.layer(l, x, [&](Part part, std::size_t, ConstMatrix value) {
      const bool is_sum = part == Part::x_plus_attention || part == Part::x_plus_feed_forward;
      if (joined == Joined::post_norm && is_sum) straight /= root_mean_square(value);
    });
    const double size = root_mean_square(x);
    after.push_back({size, spread(x), grown * size_0 / size, straight * size_0 / size});
  }
  return after;
}

}  // namespace t2t
