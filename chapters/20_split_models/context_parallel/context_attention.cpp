#include "20_split_models/context_parallel/context_attention.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "04_causal_attention/fast/softmax_rows.hpp"
#include "06_gqa/grouped_query_attention.hpp"
#include "19_ranks/collectives/messages.hpp"
#include "lanes.hpp"
#include "linalg.hpp"
#include "shapes.hpp"

namespace t2t {

static constexpr std::size_t tile_queries = 64, tile_keys = 256;
static constexpr float none = -std::numeric_limits<float>::infinity();

static std::vector<Range> ranges_of(std::size_t T, std::size_t size, std::size_t rank) {
  return token_ranges(TokenOrder::zigzag, T, size, rank);
}
static std::size_t most_tokens(std::size_t T, std::size_t size) {
  std::size_t most = 0;
  for (std::size_t r = 0; r < size; ++r) most = std::max(most, tokens_in(ranges_of(T, size, r)));
  return most;
}

/// Returns the settings that all layers have in common.
static BlockSettings checked(std::span<const BlockSettings> layers, std::size_t T,
                             std::size_t size) {
  expect(T >= 2 * size, "T, the tokens", fmt::format("at least two for each of {} ranks", size), T);
  for (const BlockSettings& s : layers) {
    expect(s.window == 0, "window", "0, no window, for a divided sequence", s.window);
    expect(s.score_cap == 0, "score_cap", "0, no cap, for a divided sequence", s.score_cap);
    if (s.H != layers[0].H || s.G != layers[0].G || s.D != layers[0].D)
      throw std::invalid_argument(
          "layers: wanted equal H, G and D in all of them for a divided sequence");
  }
  return layers[0];
}

ContextAttention::ContextAttention(const Communicator& ranks, std::span<const BlockSettings> layers,
                                   std::size_t T)
    : ranks_(ranks),
      settings_(checked(layers, T, ranks.size)),
      T_(T),
      tables_(layers, T, T),
      own_(ranges_of(T, ranks.size, ranks.rank)) {
  for (std::size_t i = 0; i < own_.size(); ++i)
    runs_.push_back({.sequence = i, .position = own_[i].begin, .rows = own_[i].size()});
  const std::size_t most = most_tokens(T, ranks.size), own = tokens_in(own_);
  for (KeyBlock* block : {&here_, &next_})
    block->keys_values = empty(most, 2 * settings_.G * settings_.D);
  highest_ = empty(own, settings_.H), sums_ = empty(own, settings_.H);
  scores_ = empty(tile_queries, tile_keys);
}

void ContextAttention::store(const Projected& in) {
  here_.ranges = own_;
  const std::size_t width = settings_.G * settings_.D;
  for (std::size_t t = 0; t < in.k.rows; ++t) {
    const Row both = row(here_.keys_values, t);
    std::ranges::copy(in.k.row(t), both.begin());
    std::ranges::copy(in.v.row(t), both.subspan(width).begin());
  }
}

/// In step s, the block of the rank s places before this one arrives.
void ContextAttention::pass_on(std::size_t step) {
  const std::size_t p = ranks_.size, owner = (ranks_.rank + p - step) % p;
  next_.ranges = ranges_of(T_, p, owner);
  const auto floats = [](KeyBlock& block) {
    return Row(block.keys_values.data(), tokens_in(block.ranges) * block.keys_values.shape(1));
  };
  exchange(ranks_, floats(here_), (ranks_.rank + 1) % p, floats(next_), (ranks_.rank + p - 1) % p,
           Purpose::other);
  std::swap(here_, next_);
}

/// The queries of one head meet a tile's keys. Of the keys, query 0 sees `visible`, query 1 one
/// more, and so on.
void ContextAttention::meet_tile(Matrix q, Matrix keys_values, std::size_t h,
                                 std::size_t first_query, std::size_t visible, Matrix out) {
  const std::size_t D = settings_.D, G = settings_.G, g = group_of(h, settings_.H, G);
  const Matrix keys = keys_values.head(g, D), values = keys_values.head(G + g, D);
  const Matrix scores = Matrix(scores_).rows_from(0, q.rows).cols_from(0, keys.rows);
  matmul_bt(q, keys, scores, rule_of(settings_).factor_for(D));
  for (std::size_t t = 0; t < q.rows; ++t) {
    const std::size_t seen = std::min(visible + t, keys.rows);
    const Row of_seen = scores.row(t).first(seen);
    std::ranges::fill(scores.row(t).subspan(seen), 0.0f);
    if (seen == 0) continue;
    float& highest = highest_(first_query + t, h);
    const float before = highest;
    highest = std::max(before, max_row(of_seen));
    const float kept = std::exp(before - highest);
    sums_(first_query + t, h) = kept * sums_(first_query + t, h) + exp_and_sum(of_seen, 1, highest);
    for (float& x : out.row(t)) x *= kept;
  }
  add_matmul(scores, values, out);
}

/// The tiles of two ranges. A tile of keys that begins after the last query is seen by none.
void ContextAttention::meet_ranges(const Projected& in, Matrix heads, std::size_t query,
                                   std::size_t first_query, const Range& keys,
                                   std::size_t first_key) {
  const Range& queries = own_[query];
  for (std::size_t t = queries.begin; t < queries.end; t += tile_queries) {
    const std::size_t rows = std::min(tile_queries, queries.end - t),
                      first = first_query + t - queries.begin;
    for (std::size_t s = keys.begin; s < std::min(keys.end, t + rows); s += tile_keys) {
      const std::size_t count = std::min(tile_keys, keys.end - s);
      const Matrix tile = Matrix(here_.keys_values).rows_from(first_key + s - keys.begin, count);
      const std::size_t visible = s > t ? 0 : t + 1 - s, later = s > t ? s - t : 0;
      for (std::size_t h = 0; h < settings_.H && later < rows; ++h)
        meet_tile(in.q.head(h, settings_.D).rows_from(first + later, rows - later), tile, h,
                  first + later, std::max<std::size_t>(visible, 1),
                  heads.head(h, settings_.D).rows_from(first + later, rows - later));
    }
  }
}

void ContextAttention::meet_block(const Projected& in, Matrix heads) {
  std::size_t first_query = 0;
  for (std::size_t i = 0; i < own_.size(); first_query += own_[i++].size()) {
    std::size_t first_key = 0;
    for (const Range& keys : here_.ranges) {
      meet_ranges(in, heads, i, first_query, keys, first_key);
      first_key += keys.size();
    }
  }
}

void ContextAttention::operator()(const Projected& in, Matrix heads, const Trace& trace) {
  tables_.rotate(in, trace);
  store(in);
  highest_.fill(none), sums_.fill(0);
  for (std::size_t t = 0; t < heads.rows; ++t) std::ranges::fill(heads.row(t), 0.0f);
  meet_block(in, heads);
  for (std::size_t step = 1; step < ranks_.size; ++step) {
    pass_on(step);
    meet_block(in, heads);
  }
  for (std::size_t t = 0; t < heads.rows; ++t)
    for (std::size_t h = 0; h < settings_.H; ++h)
      for (float& x : heads.head(h, settings_.D).row(t)) x /= sums_(t, h);
}

std::size_t ContextAttention::bytes() const {
  const std::size_t of_table =
      settings_.uses_rope ? tables_.table(0).cos.size() + tables_.table(0).sin.size() : 0;
  return (of_table + here_.keys_values.size() + next_.keys_values.size() + highest_.size() +
          sums_.size() + scores_.size()) *
         sizeof(float);
}

std::size_t context_attention_bytes(const BlockSettings& settings, std::size_t T, std::size_t size,
                                    std::size_t rank) {
  const std::size_t own = tokens_in(ranges_of(T, size, rank)), most = most_tokens(T, size);
  const std::size_t table = settings.uses_rope ? T * settings.D : 0;
  return (table + 2 * most * 2 * settings.G * settings.D + 2 * own * settings.H +
          tile_queries * tile_keys) *
         sizeof(float);
}

}  // namespace t2t
