#include "20_split_models/tensor_parallel/shards.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "shapes.hpp"

namespace t2t {

static void expect_ranks(std::size_t ranks, std::size_t most, const char* of) {
  if (ranks > most)
    throw std::invalid_argument(
        fmt::format("ranks: wanted at most {} = {}, got {}", of, most, ranks));
}

static void expect_divisible(const BlockSettings& whole, Shard shard, std::size_t unit) {
  expect_settings(whole);
  expect(shard.rank < shard.ranks, "rank", fmt::format("below the {} ranks", shard.ranks),
         shard.rank);
  expect(whole.experts == 0, "experts", "a model without them, which are divided in another way",
         whole.experts);
  if (whole.heads_together)
    throw std::invalid_argument(
        "heads_together: wanted a norm for each head, got one over all heads, which no rank has");
  expect(unit >= 1 && whole.F % unit == 0, "F, the hidden channels",
         fmt::format("a multiple of the {} channels that belong together", unit), whole.F);
  expect_ranks(shard.ranks, whole.H, "H");
  expect_ranks(shard.ranks, whole.F / unit, unit == 1 ? "F" : "F in whole blocks");
}

/// The key heads that these query heads read, each once; or one for each query head, if they serve
/// different numbers of them.
static std::vector<std::size_t> keys_of(Range heads, std::size_t heads_per_key) {
  std::vector<std::size_t> of_each;
  for (std::size_t h = heads.begin; h < heads.end; ++h) of_each.push_back(h / heads_per_key);
  std::vector<std::size_t> once = of_each;
  once.erase(std::ranges::unique(once).begin(), once.end());
  const std::size_t serves = std::max<std::size_t>(of_each.size() / once.size(), 1);
  for (std::size_t i = 0; i < of_each.size(); ++i)
    if (i / serves >= once.size() || of_each[i] != once[i / serves]) return of_each;
  return once;
}

BlockShard block_shard(const BlockSettings& whole, Shard shard, std::size_t unit) {
  expect_divisible(whole, shard, unit);
  const std::size_t heads_per_key = whole.H / whole.G;
  const Range units = range_of(whole.F / unit, shard.ranks, shard.rank);
  const Range hidden = {units.begin * unit, units.end * unit};
  // Whole groups as long as there is one for each rank; then heads.
  const std::size_t together = shard.ranks <= whole.G ? heads_per_key : 1;
  const Range own = range_of(whole.H / together, shard.ranks, shard.rank);
  const Range heads = {own.begin * together, own.end * together};
  return {heads, keys_of(heads, heads_per_key), hidden};
}

Config config_of(const Config& whole, Shard shard, std::size_t unit) {
  expect_ranks(shard.ranks, whole.V, "V");
  Config own = whole;
  const auto divide = [&](BlockSettings& block) {
    const BlockShard of = block_shard(block, shard, unit);
    block.H = of.heads.size(), block.G = of.keys.size(), block.F = of.hidden.size();
  };
  divide(own.block);
  for (BlockSettings& block : own.layers) divide(block);
  return own;
}

std::size_t Piece::row_count() const {
  std::size_t count = 0;
  for (const Range& range : rows) count += range.size();
  return count;
}

/// Heads of width D, as ranges of rows or columns.
static Range of_heads(Range heads, std::size_t D) { return {heads.begin * D, heads.end * D}; }
static std::vector<Range> of_heads(const std::vector<std::size_t>& keys, std::size_t D) {
  std::vector<Range> ranges;
  for (const std::size_t key : keys) {
    if (!ranges.empty() && ranges.back().end == key * D)
      ranges.back().end += D;
    else
      ranges.push_back({key * D, (key + 1) * D});
  }
  return ranges;
}

Piece piece_of(const TensorInfo& info, const Config& whole, Shard shard, std::size_t unit) {
  const Range rows = {0, info.rows}, cols = {0, info.cols};
  const bool first = shard.rank == 0;
  if (info.role == Role::embedding) return {{range_of(info.rows, shard.ranks, shard.rank)}, cols};
  if (info.role == Role::positions) return {{rows}, cols, !first};
  if (!info.layer) return {{rows}, cols};
  const BlockSettings& settings = settings_of(whole, *info.layer);
  const BlockShard own = block_shard(settings, shard, unit);
  const auto is_one_of = [&](auto... names) { return ((info.name == names) || ...); };
  if (is_one_of("w_q", "b_q")) return {{of_heads(own.heads, settings.D)}, cols};
  if (is_one_of("w_k", "w_v", "b_k", "b_v")) return {of_heads(own.keys, settings.D), cols};
  if (is_one_of("w_o")) return {{rows}, of_heads(own.heads, settings.D)};
  if (is_one_of("w_gate", "w_up", "b_up")) return {{own.hidden}, cols};
  if (is_one_of("w_down")) return {{rows}, own.hidden};
  // These are added to a sum over ranks, and must be added once.
  if (is_one_of("b_o", "b_down")) return {{rows}, cols, !first};
  return {{rows}, cols};
}

ShardSize shard_size(const Config& whole, Shard shard, std::size_t unit) {
  ModelWeights none = room_for(config_of(whole, shard, unit));
  ShardSize size = {0, 0};
  for_each_tensor(none, whole, [&](const TensorInfo& info, const auto&) {
    const Piece piece = piece_of(info, whole, shard, unit);
    if (info.size() == 0 || piece.zeros) return;
    size.parameters += piece.size();
    if (info.role == Role::matrix || info.role == Role::into_stream) size.in_blocks += piece.size();
  });
  return size;
}

}  // namespace t2t
