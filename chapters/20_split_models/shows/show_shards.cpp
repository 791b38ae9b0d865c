#include "20_split_models/shows/show_shards.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "19_ranks/shows/ranks_text.hpp"
#include "20_split_models/tensor_parallel/shards.hpp"
#include "program/print.hpp"

namespace t2t {

/// "0", "3–8".
static std::string range_text(const Range& range) {
  if (range.size() == 1) return fmt::format("{}", range.begin);
  return fmt::format("{}–{}", range.begin, range.end - 1);
}

/// Bytes of a token's keys and values in all layers, as floats.
static std::size_t cache_bytes(const Config& config) {
  std::size_t floats = 0;
  for (const BlockSettings& s : settings_of_all(config)) floats += 2 * s.G * s.D;
  return floats * sizeof(float);
}

void show_shards(const Config& whole, std::size_t ranks, std::size_t unit) {
  Table table({"rank", "query heads", "key heads", "hidden channels", "tokens", ">weights, bytes",
               ">cache a token, bytes"});
  for (std::size_t r = 0; r < ranks; ++r) {
    const Shard shard = {r, ranks};
    const BlockShard own = block_shard(whole.block, shard, unit);
    table.add({fmt::format("{}", r), range_text(own.heads),
               fmt::format("{}", fmt::join(own.keys, ", ")), range_text(own.hidden),
               range_text(range_of(whole.V, ranks, r)),
               with_commas(sizeof(float) * shard_size(whole, shard, unit).parameters),
               with_commas(cache_bytes(config_of(whole, shard, unit)))});
  }
  table.print();
}

/// "3 + 6", "9 × 1".
static std::string sum_text(const std::vector<std::size_t>& sizes) {
  if (sizes.size() > 2 && std::ranges::count(sizes, sizes[0]) == std::ptrdiff_t(sizes.size()))
    return fmt::format("{} × {}", sizes.size(), sizes[0]);
  return fmt::format("{}", fmt::join(sizes, " + "));
}

/// What all ranks have of a model's heads, and what the fullest has.
struct Division {
  std::vector<std::size_t> heads, keys;  // [ranks]
  std::size_t most_in_blocks = 0, most_parameters = 0, caches = 0;
};

static Division divided(const Config& whole, std::size_t ranks) {
  Division all;
  for (std::size_t r = 0; r < ranks; ++r) {
    const Config own = config_of(whole, {r, ranks});
    const ShardSize size = shard_size(whole, {r, ranks});
    all.heads.push_back(own.block.H), all.keys.push_back(own.block.G);
    all.most_in_blocks = std::max(all.most_in_blocks, size.in_blocks);
    all.most_parameters = std::max(all.most_parameters, size.parameters);
    all.caches += cache_bytes(own);
  }
  return all;
}

void show_uneven_heads() {
  const Config whole = preset("smollm2-135m");
  const Division alone = divided(whole, 1);
  print_section("SmolLM2-135M's 9 query heads and 3 key heads, divided");
  Table table({">ranks", "query heads", "key heads", ">fullest rank's work", ">even",
               ">its weights, bytes", ">all caches"});
  std::string refused;
  for (const std::size_t ranks : {1, 2, 3, 4, 5, 9, 10}) try {
      const Division all = divided(whole, ranks);
      table.add(
          {fmt::format("{}", ranks), sum_text(all.heads), sum_text(all.keys),
           fmt::format("{:.1f} %", 100 * double(all.most_in_blocks) / double(alone.most_in_blocks)),
           fmt::format("{:.1f} %", 100 / double(ranks)),
           with_commas(sizeof(float) * all.most_parameters),
           fmt::format("{:.2f}×", double(all.caches) / double(alone.caches))});
    } catch (const std::invalid_argument& error) {
      refused = fmt::format("{} are refused: {}.", ranks_text(ranks), error.what());
    }
  table.print();
  fmt::print("\n");
  print_paragraph(
      "Work: multiplications in the blocks' matrices. Up to 3 ranks have whole groups; more ranks "
      "have heads, and repeat the key heads that these read. " +
      refused);
}

}  // namespace t2t
