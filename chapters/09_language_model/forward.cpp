#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "01_embedding/embedding.hpp"
#include "02_normalization/layer_norm.hpp"
#include "02_normalization/rms_norm.hpp"
#include "03_rope/positions.hpp"
#include "09_language_model/model.hpp"
#include "linalg.hpp"
#include "shapes.hpp"

namespace t2t {

ModelState model_state(const Config& config, std::size_t S, std::size_t chunk,
                       PrefillAttention prefill) {
  expect_config(config);
  expect(S >= 1 && S <= config.T_max, "S, the positions to make room for",
         "1 to T_max = " + std::to_string(config.T_max), double(S));
  expect(chunk >= 1, "chunk, the tokens of a call", "at least 1", double(chunk));
  chunk = std::min(chunk, S);
  const BlockSettings settings = block_settings(config);
  return {.length = 0,
          .S = S,
          .caches = std::vector<KvCache>(config.L, make_kv_cache(config.G, S, config.D)),
          .rope = block_rope_table(settings, S),
          .scratch = block_scratch(settings, chunk, S, std::move(prefill)),
          .x = empty(chunk, config.C),
          .normed = empty(chunk, config.C)};
}

void reset(ModelState& state) { truncate(state, 0); }

void truncate(ModelState& state, std::size_t position) {
  expect(position <= state.length, "position, the tokens to keep",
         "at most the length " + std::to_string(state.length), double(position));
  for (KvCache& cache : state.caches) truncate(cache, position);
  state.length = position;
}

/// Everything that could go wrong, looked at before anything is written.
static void expect_forward(const Config& config, const ModelWeights& weights,
                           const ModelState& state, std::span<const int> ids) {
  const std::size_t T = ids.size(), chunk = state.x.shape(0);
  expect_config(config);
  expect_model(weights, config);
  expect(T >= 1, "T, the tokens", "at least 1", double(T));
  if (state.length > state.S || T > state.S - state.length)
    throw std::invalid_argument(fmt::format("ids: wanted at most S = {} tokens in all, got {} + {}",
                                            state.S, state.length, T));
  // Looking up rows without columns reads nothing, and throws if an id is outside the vocabulary.
  embed_rows(ids, {nullptr, config.V, 0, 0}, {nullptr, T, 0, 0});

  expect_shape("state.x", state.x, {chunk, config.C});
  expect_shape("state.normed", state.normed, {chunk, config.C});
  if (state.caches.size() != config.L)
    throw std::invalid_argument(
        fmt::format("state.caches: wanted L = {}, got {}", config.L, state.caches.size()));
  for (const KvCache& cache : state.caches) {
    expect_shape("state.caches' keys", cache.keys, {config.G, state.S, config.D});
    expect(cache.length == state.length, "length of state.caches", "the state's own",
           double(cache.length));
  }
}

/// The same trace, with the layer in every name.
static Trace of_layer(const Trace& trace, std::size_t l) {
  if (!trace) return {};
  return [&trace, l](std::string_view name, ConstMatrix value) {
    trace(fmt::format("layer {} {}", l, name), value);
  };
}

/// One chunk through the stack. Returns its rows of the residual stream, [T, C], in state.x.
static Matrix through_blocks(const Config& config, const ModelWeights& weights, ModelState& state,
                             std::span<const int> ids, const Trace& trace) {
  const Matrix x = Matrix(state.x).rows_from(0, ids.size());
  embed_rows(ids, weights.embedding, x);
  if (config.positions == Positions::learned) add_positions(x, weights.positions, state.length);
  tell(trace, "embedding", x);

  const BlockSettings settings = block_settings(config);
  for (std::size_t l = 0; l < config.L; ++l)
    block_rows(x, weights.blocks[l], settings, state.rope, state.caches[l], state.scratch,
               of_layer(trace, l));
  state.length += ids.size();
  return x;
}

/// The final norm and the head, of as many rows as are wanted.
static void logits_of(ConstMatrix x, const Config& config, const ModelWeights& weights,
                      ModelState& state, Matrix logits, const Trace& trace) {
  const Matrix normed = Matrix(state.normed).rows_from(0, x.rows);  // [T, C]
  norm_rows(x, weights.final_norm, block_settings(config), normed);
  tell(trace, "final_norm", normed);
  matmul_bt(normed, head_of(weights, config), logits);
  tell(trace, "logits", logits);
}

/// Calls after_chunk(from, x) for each chunk of ids. What throws on the way leaves the state at the
/// length that it had.
template <class AfterChunk>
static void in_chunks(const Config& config, const ModelWeights& weights, ModelState& state,
                      std::span<const int> ids, const Trace& trace, AfterChunk after_chunk) {
  const std::size_t length = state.length, chunk = state.x.shape(0);
  try {
    for (std::size_t from = 0; from < ids.size(); from += chunk) {
      const std::size_t T = std::min(chunk, ids.size() - from);
      after_chunk(from, through_blocks(config, weights, state, ids.subspan(from, T), trace));
    }
  } catch (...) {
    for (KvCache& cache : state.caches) cache.length = length;
    state.length = length;
    throw;
  }
}

void forward(const Config& config, const ModelWeights& weights, ModelState& state,
             std::span<const int> ids, Row logits, const Trace& trace) {
  expect_forward(config, weights, state, ids);
  expect_shape("logits", ConstRow(logits), {config.V});
  in_chunks(config, weights, state, ids, trace, [&](std::size_t from, Matrix x) {
    // Only the last token of the last chunk is asked what follows it.
    if (from + x.rows < ids.size()) return;
    logits_of(x.rows_from(x.rows - 1, 1), config, weights, state,
              {logits.data(), 1, config.V, config.V}, trace);
  });
}

void forward_all(const Config& config, const ModelWeights& weights, ModelState& state,
                 std::span<const int> ids, Matrix logits, const Trace& trace) {
  expect_forward(config, weights, state, ids);
  expect_shape("logits", logits, {ids.size(), config.V});
  in_chunks(config, weights, state, ids, trace, [&](std::size_t from, Matrix x) {
    logits_of(x, config, weights, state, logits.rows_from(from, x.rows), trace);
  });
}

}  // namespace t2t
