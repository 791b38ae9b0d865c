// Where a block's time goes, by its trace: each name ends a part.
#pragma once

#include <algorithm>
#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "08_block/block.hpp"

namespace t2t {

struct PartSeconds {
  std::map<std::string, double> of;
  double all = 0;
};

/// So many copies of a block that their weights come from memory, as they do in a model.
class ManyBlocks {
 public:
  const std::vector<std::string> parts = {"norms", "q, k, v", "RoPE",        "cache, attention",
                                          "o",     "sums",    "feed-forward"};

  ManyBlocks(const BlockSettings& settings, std::size_t T, Random& random)
      : settings_(settings),
        text_(random.normal<2>({T, settings.C})),
        table_(block_rope_table(settings, T + 1)),
        cache_(make_kv_cache(settings.G, T + 1, settings.D)),
        scratch_(block_scratch(settings, T, T + 1)) {
    const BlockWeights one = block_weights(settings, random);
    const std::size_t bytes = parameter_count(one) * sizeof(float);
    layers_.assign(std::clamp<std::size_t>((160 << 20) / bytes, 2, 64), one);
  }
  std::size_t parameters() const { return parameter_count(layers_[0]); }

  /// Of one block, the mean over all of them: `tokens` more after the first `start`, which are
  /// in the cache.
  PartSeconds part_seconds(std::size_t start, std::size_t tokens) {
    walk(start, tokens, {});
    PartSeconds seconds;
    walk(start, tokens, [&](std::string_view name, ConstMatrix) {
      const Clock::time_point now = Clock::now();
      const double spent = std::chrono::duration<double>(now - last_).count();
      seconds.of[part_of(name)] += spent / double(walked(tokens));
      seconds.all += spent / double(walked(tokens));
      last_ = Clock::now();
    });
    return seconds;
  }

 private:
  using Clock = std::chrono::steady_clock;

  /// A long prompt reads each weight often: then a few blocks will do.
  std::size_t walked(std::size_t tokens) const {
    return std::clamp<std::size_t>(2048 / tokens, 1, layers_.size());
  }

  void walk(std::size_t start, std::size_t tokens, const Trace& trace) {
    Tensor<2> x = text_;  // [T, C]
    for (std::size_t l = 0; l < walked(tokens); ++l) {
      truncate(cache_, start);
      last_ = Clock::now();
      block_rows(Matrix(x).rows_from(0, tokens), layers_[l], settings_, table_, cache_, scratch_,
                 trace);
    }
  }

  /// The part that ends where the trace tells this name.
  std::string part_of(std::string_view name) const {
    if (name.ends_with("_norm")) return "norms";
    if (name == "q" || name == "k" || name == "v") return "q, k, v";
    if (name.ends_with("_turned")) return "RoPE";
    if (name == "heads") return "cache, attention";
    if (name == "attention") return "o";
    return name.starts_with("x_plus") ? "sums" : "feed-forward";
  }

  BlockSettings settings_;
  Tensor<2> text_;  // [T, C]
  RopeTable table_;
  KvCache cache_;
  BlockScratch scratch_;
  std::vector<BlockWeights> layers_;
  Clock::time_point last_;
};

}  // namespace t2t
