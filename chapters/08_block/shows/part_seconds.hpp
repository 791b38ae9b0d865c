// How long each part of a block takes: the trace tells when the work on each intermediate ends.
#pragma once

#include <algorithm>
#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "08_block/fast/cached_attention.hpp"

namespace t2t {

struct PartSeconds {
  std::map<std::string, double> of;
  double all = 0;
};

/// Enough copies of a block that their weights do not fit in a cache, as those of a model do not.
class ManyBlocks {
 public:
  const std::vector<std::string> parts = {
      "norms", "q, k, v", "RoPE", "cache and attention", "o", "residual additions", "feed-forward"};

  ManyBlocks(const BlockSettings& settings, std::size_t T, Random& random)
      : input_(random.normal<2>({T, settings.C})),
        attention_(settings, T + 1, T),
        scratch_(settings, T),
        functions_{.attention = std::ref(attention_)} {
    const BlockWeights one = draw_block(settings, random);
    const std::size_t bytes = parameter_count(one) * sizeof(float);
    weights_.assign(std::clamp<std::size_t>((160 << 20) / bytes, 2, 64), one);
    for (const BlockWeights& weights : weights_) blocks_.emplace_back(settings, weights);
  }
  std::size_t parameters() const { return parameter_count(weights_[0]); }

  /// Times of one block, the mean over the copies, for `tokens` tokens that follow `start` cached
  /// ones.
  PartSeconds part_seconds(std::size_t start, std::size_t tokens) {
    walk(start, tokens, {});
    PartSeconds seconds;
    walk(start, tokens, [&](Part part, std::size_t, ConstMatrix) {
      const Clock::time_point now = Clock::now();
      const double spent = std::chrono::duration<double>(now - last_).count();
      seconds.of[work_before(part)] += spent / double(walked(tokens));
      seconds.all += spent / double(walked(tokens));
      last_ = Clock::now();
    });
    return seconds;
  }

 private:
  using Clock = std::chrono::steady_clock;

  /// A long prompt uses each weight often, so fewer copies are enough.
  std::size_t walked(std::size_t tokens) const {
    return std::clamp<std::size_t>(2048 / tokens, 1, blocks_.size());
  }

  void walk(std::size_t start, std::size_t tokens, const Trace& trace) {
    Tensor<2> x = input_;  // [T, C]
    for (std::size_t l = 0; l < walked(tokens); ++l) {
      last_ = Clock::now();
      block_rows(Matrix(x).rows_from(0, tokens), Run{0, start, tokens}, blocks_[l], functions_,
                 scratch_, trace);
    }
  }

  /// The work that has just ended when the trace is told this part.
  static const char* work_before(Part part) {
    switch (part) {
      case Part::attention_norm:
      case Part::feed_forward_norm:
      case Part::post_attention_norm:
      case Part::post_feed_forward_norm:
        return "norms";
      case Part::q:
      case Part::k:
      case Part::v:
        return "q, k, v";
      case Part::q_rotated:
      case Part::k_rotated:
        return "RoPE";
      case Part::heads:
        return "cache and attention";
      case Part::attention:
        return "o";
      case Part::x_plus_attention:
      case Part::x_plus_feed_forward:
        return "residual additions";
      default:
        return "feed-forward";
    }
  }

  Tensor<2> input_;  // [T, C]
  CachedAttention attention_;
  BlockScratch scratch_;
  BlockFunctions functions_;
  std::vector<BlockWeights> weights_;
  std::vector<Block> blocks_;
  Clock::time_point last_;
};

}  // namespace t2t
