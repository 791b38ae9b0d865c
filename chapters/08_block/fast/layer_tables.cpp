#include "08_block/fast/layer_tables.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <stdexcept>
#include <string>

#include "03_rope/fast/rope_rows.hpp"
#include "rows.hpp"
#include "shapes.hpp"

namespace t2t {

/// Whether both can use the same RoPE table.
static bool same_table(const BlockSettings& a, const BlockSettings& b) {
  return a.uses_rope == b.uses_rope && a.D == b.D && a.theta == b.theta &&
         a.frequencies == b.frequencies;
}

LayerTables::LayerTables(std::span<const BlockSettings> layers, std::size_t S,
                         std::size_t max_run_rows)
    : S_(S),
      max_run_rows_(max_run_rows),
      threads_(thread_count()),
      layers_(layers.begin(), layers.end()) {
  expect(!layers.empty(), "layers", "at least 1", 0);
  expect(S >= 1, "S, the positions of the caches", "at least 1", S);
  expect(max_run_rows >= 1, "max_run_rows, the rows of a sequence in a call", "at least 1",
         max_run_rows);
  for (std::size_t l = 0; l < layers.size(); ++l) {
    expect_settings(layers[l]);
    const auto same = [&](const BlockSettings& other) { return same_table(other, layers[l]); };
    const auto earlier = std::ranges::find_if(layers.first(l), same) - layers.begin();
    const bool is_new = std::size_t(earlier) == l;
    if (is_new) tables_.push_back(block_rope_table(layers[l], S));
    table_of_.push_back(is_new ? tables_.size() - 1 : table_of_[std::size_t(earlier)]);
  }
}

void LayerTables::rotate(const Projected& in, const Trace& trace) const {
  const BlockSettings& settings = in.block.settings();
  if (!settings.uses_rope) return;
  const RopeTable& angles = table(in.block.layer());
  for_each_run(in.runs, [&](const Run& run, std::size_t first) {
    const Matrix q = in.q.rows_from(first, run.rows), k = in.k.rows_from(first, run.rows);
    rope_rows(q, settings.D, angles, run.position, settings.pairing);
    rope_rows(k, settings.D, angles, run.position, settings.pairing);
  });
  tell(trace, Part::q_rotated, in.block.layer(), in.q);
  tell(trace, Part::k_rotated, in.block.layer(), in.k);
}

/// What a layer's cache and table were made for, as text for a message.
static std::string kept_as(const BlockSettings& s) {
  std::string words = fmt::format("H = {}, G = {}, D = {}, ", s.H, s.G, s.D);
  if (!s.uses_rope) return words + "no RoPE";
  const char* pairing = s.pairing == Pairing::halves ? "halves" : "neighbours";
  const char* scaled = s.frequencies.empty() ? "" : ", scaled";
  return words + fmt::format("theta = {}{}, {}", s.theta, scaled, pairing);
}

/// Throws unless the block has the heads and the RoPE that its layer was made for.
void LayerTables::expect_block(const Block& block) const {
  if (block.layer() >= layers_.size() || thread_count() > threads_)
    throw std::invalid_argument(
        fmt::format("attention: made for {} layers and {} threads, wanted layer {} and {} threads",
                    layers_.size(), threads_, block.layer(), thread_count()));
  const BlockSettings &made = layers_[block.layer()], &wanted = block.settings();
  if (made.H != wanted.H || made.G != wanted.G || !same_table(made, wanted) ||
      (made.uses_rope && made.pairing != wanted.pairing))
    throw std::invalid_argument(fmt::format("attention, layer {}: made for {}; wanted {}",
                                            block.layer(), kept_as(made), kept_as(wanted)));
}

/// Throws unless a run can be one of a call: of an existing sequence, with a row or more, of which
/// none is at position S or later.
static void expect_run(const Run& run, std::size_t sequences, std::size_t S,
                       std::size_t max_run_rows) {
  if (run.sequence >= sequences)
    throw std::invalid_argument(
        fmt::format("runs: wanted sequences from 0 to {}, got {}", sequences - 1, run.sequence));
  if (run.rows < 1 || run.rows > max_run_rows)
    throw std::invalid_argument(fmt::format("sequence {}: wanted 1 to {} rows in a call, got {}",
                                            run.sequence, max_run_rows, run.rows));
  if (run.position > S || run.rows > S - run.position)
    throw std::invalid_argument(
        fmt::format("sequence {}: wanted at most S = {} positions in all, got {} and {} more",
                    run.sequence, S, run.position, run.rows));
}

void expect_no_gap(const Run& run, std::size_t length) {
  if (run.position > length)
    throw std::invalid_argument(
        fmt::format("sequence {}: wanted a position of at most its length {}, got {}", run.sequence,
                    length, run.position));
}

void LayerTables::expect_call(const Projected& in, ConstMatrix heads, std::size_t sequences) const {
  expect_block(in.block);
  const BlockSettings& s = in.block.settings();
  const std::size_t T = in.q.rows;
  expect_shape("q", in.q, {T, s.H * s.D});
  expect_shape("k", in.k, {T, s.G * s.D});
  expect_shape("v", in.v, {T, s.G * s.D});
  expect_shape("heads", heads, {T, s.H * s.D});

  std::size_t rows = 0;
  for (const Run& run : in.runs) {
    expect_run(run, sequences, S_, max_run_rows_);
    const auto of_sequence = [&](const Run& other) { return other.sequence == run.sequence; };
    expect(std::ranges::count_if(in.runs, of_sequence) == 1, "sequence of the runs", "each once",
           run.sequence);
    rows += run.rows;
  }
  if (rows != T)
    throw std::invalid_argument(fmt::format("runs: wanted {} rows in all, got {}", T, rows));
}

}  // namespace t2t
