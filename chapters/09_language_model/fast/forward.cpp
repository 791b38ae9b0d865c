#include "09_language_model/fast/forward.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "01_embedding/embedding.hpp"
#include "03_rope/positions/positions.hpp"
#include "04_causal_attention/fast/score_rule.hpp"
#include "09_language_model/accounts/accounts.hpp"
#include "memory.hpp"
#include "rows.hpp"
#include "shapes.hpp"

namespace t2t {

void embed_tokens(const Model& model, std::span<const int> ids, std::size_t start, Matrix x) {
  const Weight& table = model.weights().embedding;
  expect_ids(ids, table.rows());
  expect_shape("x", x, {ids.size(), table.cols()});
  const Config& config = model.config();
  for_each_row(x.rows, x.cols, [&](std::size_t t) {
    table.row(std::size_t(ids[t]), x.row(t));
    if (config.embedding_scale != 1)
      for (float& number : x.row(t)) number *= config.embedding_scale;
  });
  if (config.learned_positions) add_positions(x, model.weights().positions.floats(), start);
}

void run_layers(const Model& model, Matrix x, Runs runs, const BlockFunctions& functions,
                BlockScratch& scratch, const Trace& trace) {
  for (std::size_t l = 0; l < model.config().L; ++l)
    block_rows(x, runs, model.block(l), functions, scratch, trace);
}

void logits_of(const Model& model, Matrix x, Matrix logits, const Trace& trace) {
  const Config& config = model.config();
  norm_rows(x, model.weights().final_norm, config.block.norm, config.block.eps, x);
  tell(trace, Part::final_norm, 0, x);
  if (config.logit_scale != 1)
    for_each_row(x.rows, x.cols, [&](std::size_t t) {
      for (float& number : x.row(t)) number *= config.logit_scale;
    });
  matmul_bt(x, model.head(), logits);
  if (config.logit_cap > 0)
    for_each_row(logits.rows, logits.cols, [&](std::size_t t) {
      cap_row(logits.row(t), {Mask::none, 1, config.logit_cap}, x.cols);
    });
  tell(trace, Part::logits, 0, logits);
}

/// Returns S, once the config, S and the options are good and there is memory for all of it. A
/// state begins with this, so that it makes nothing of what is refused.
static std::size_t checked_positions(const Config& config, std::size_t S,
                                     const StateOptions& options) {
  expect_state_options(config, S, options);
  if (options.pass) return S;

  // Caches, the rows of a pass without their logits, which the caller holds, and RoPE's table.
  const InferenceMemory memory = inference_memory(config, S, sizeof(float));
  const double rows =
      double(rows_of_a_pass(S, options)) * (memory.scratch - sizeof(float) * double(config.V));
  const double table = sizeof(float) * double(S) * double(config.block.D);
  const double caches = options.memory.attention ? 0 : double(options.sequences) * memory.cache;
  expect_memory(caches + rows + table, fmt::format("a state of S = {} positions", S),
                "make S or the model smaller");
  return S;
}

/// What the options bring, or float caches.
static SequenceMemory attention_of(std::span<const BlockSettings> layers, std::size_t S,
                                   StateOptions& options) {
  if (options.memory.attention) return std::move(options.memory);
  const auto cached = std::make_shared<CachedAttention>(layers, S, std::min(options.chunk, S),
                                                        options.sequences, options.kernel);
  return {[cached](const Projected& in, Matrix heads, const Trace& trace) {
    (*cached)(in, heads, trace);
  }};
}

ModelState::ModelState(const Config& config, std::size_t S, StateOptions given)
    : S(checked_positions(config, S, given)),
      L(config.L),
      lengths(given.sequences, 0),
      options(std::move(given)),
      scratch(settings_of_all(config), rows_of_a_pass(S, options)),
      x(empty(scratch.max_rows, config.block.C)),
      last(empty(options.sequences, config.block.C)) {
  runs.reserve(options.sequences);
  if (options.pass) return;
  const std::vector<BlockSettings> layers = settings_of_all(config);
  SequenceMemory memory = attention_of(layers, S, options);
  functions = {
      .attention = std::move(memory.attention),
      .network = options.network ? options.network(layers, scratch.max_rows) : FeedForward(),
      .before_sum = options.before_sum};
  truncated = std::move(memory.truncated);
}

std::size_t ModelState::length(std::size_t sequence) const {
  expect(sequence < lengths.size(), "sequence", "one of the state's sequences", sequence);
  return lengths[sequence];
}

void reset(ModelState& state) {
  for (std::size_t sequence = 0; sequence < state.lengths.size(); ++sequence)
    truncate(state, 0, sequence);
}

void truncate(ModelState& state, std::size_t position, std::size_t sequence) {
  if (position > state.length(sequence))
    throw std::invalid_argument(
        fmt::format("position, the tokens to keep: wanted at most the length {}, got {}",
                    state.length(sequence), position));
  state.lengths[sequence] = position;
  if (state.truncated) state.truncated(sequence, position);
}

void set_length(ModelState& state, std::size_t length, std::size_t sequence) {
  expect(sequence < state.lengths.size(), "sequence", "one of the state's sequences", sequence);
  expect(length <= state.S, "length, the tokens of a sequence",
         fmt::format("at most S = {}", state.S), length);
  state.lengths[sequence] = length;
}

/// Checks what changes from call to call, before anything is written. Returns how many tokens the
/// sequences bring together.
static std::size_t expect_forward(const Model& model, const ModelState& state,
                                  std::span<const MoreTokens> more) {
  const Config& config = model.config();
  if (state.x.shape(1) != config.block.C || state.L != config.L)
    throw std::invalid_argument(
        fmt::format("state: wanted one made for L = {}, C = {}, got L = {}, C = {}", config.L,
                    config.block.C, state.L, state.x.shape(1)));
  if (state.S > config.T_max)
    throw std::invalid_argument(fmt::format(
        "state: wanted one of at most T_max = {} positions, got S = {}", config.T_max, state.S));
  std::size_t T = 0;
  for (const auto& [sequence, ids, wanted] : more) {
    expect(ids.size() >= 1, "T, the tokens", "at least 1", 0);
    if (wanted > ids.size())
      refuse("wanted, the tokens with logits", fmt::format("at most the {} tokens", ids.size()),
             wanted);
    const std::size_t length = state.length(sequence);
    const auto of_sequence = [sequence = sequence](const MoreTokens& other) {
      return other.sequence == sequence;
    };
    expect(std::ranges::count_if(more, of_sequence) == 1, "sequence", "each once", sequence);
    if (length > state.S || ids.size() > state.S - length)
      throw std::invalid_argument(fmt::format(
          "ids: wanted at most S = {} tokens in all, got {} + {}", state.S, length, ids.size()));
    expect_ids(ids, config.V);
    T += ids.size();
  }
  expect(T >= 1, "T, the tokens", "at least 1", 0);
  return T;
}

/// How much of `more` has been embedded: all entries before i, and `done` tokens of entry i.
struct Embedded {
  std::size_t i = 0, done = 0;
};

/// Embeds the next tokens of `more`, from `at` on, until the chunk is full, and moves `at` on.
/// Lists the runs of the chunk's rows. Returns the number of rows.
static std::size_t embed_chunk(const Model& model, ModelState& state,
                               std::span<const MoreTokens> more, Embedded& at) {
  std::size_t rows = 0;
  state.runs.clear();
  while (at.i < more.size() && rows < state.scratch.max_rows) {
    const auto& [sequence, ids, wanted] = more[at.i];
    const std::size_t count = std::min(state.scratch.max_rows - rows, ids.size() - at.done);
    const std::size_t position = state.lengths[sequence] + at.done;
    embed_tokens(model, ids.subspan(at.done, count), position,
                 Matrix(state.x).rows_from(rows, count));
    state.runs.push_back({sequence, position, count});
    rows += count, at.done += count;
    if (at.done == ids.size()) ++at.i, at.done = 0;
  }
  return rows;
}

/// Runs `more` through the layers chunk by chunk. After each it calls after_chunk(x, begin) with
/// the stream x [rows, C] and the place in `more` where the chunk begins.
template <class AfterChunk>
static void in_chunks(const Model& model, ModelState& state, std::span<const MoreTokens> more,
                      const Trace& trace, AfterChunk after_chunk) {
  for (Embedded at; at.i < more.size();) {
    const Embedded begin = at;
    const Matrix x = Matrix(state.x).rows_from(0, embed_chunk(model, state, more, at));
    if (state.options.embedded) state.options.embedded(x);
    tell(trace, Part::embedding, 0, x);
    run_layers(model, x, state.runs, state.functions, state.scratch, trace);
    after_chunk(x, begin);
  }
}

/// The same elsewhere, from ids to logits.
static void pass(const Model& model, const ModelState& state, std::span<const MoreTokens> more,
                 Matrix logits, const Trace& trace) {
  if (trace)
    throw std::invalid_argument(
        "trace: wanted none, since this state's pass reports no intermediate results, got one");
  state.options.pass(model, more, state.lengths, logits);
  if (state.options.scored && logits.rows > 0) state.options.scored(logits);
}

static void score(const Model& model, const ModelState& state, Matrix x, Matrix logits,
                  const Trace& trace) {
  logits_of(model, x, logits, trace);
  if (state.options.scored) state.options.scored(logits);
}

/// Called once everything has succeeded, so that a call that throws leaves all lengths as they
/// were.
static void add_lengths(ModelState& state, std::span<const MoreTokens> more) {
  for (const MoreTokens& of : more) state.lengths[of.sequence] += of.ids.size();
}

void forward(const Model& model, ModelState& state, std::span<const MoreTokens> more, Matrix logits,
             const Trace& trace) {
  expect_forward(model, state, more);
  std::size_t N = 0, found = 0;
  for (const MoreTokens& of : more) N += of.wanted;
  expect_shape("logits", logits, {N, model.config().V});
  if (state.options.pass) {
    pass(model, state, more, logits, trace);
    return add_lengths(state, more);
  }
  if (N > state.last.shape(0)) state.last.resize({N, model.config().block.C});
  in_chunks(model, state, more, trace, [&](Matrix x, Embedded at) {
    // Only the last tokens of each sequence get logits.
    for (std::size_t r = 0; r < x.rows; ++r) {
      const auto& [sequence, ids, wanted] = more[at.i];
      if (ids.size() - at.done <= wanted)
        std::ranges::copy(x.row(r), row(state.last, found++).begin());
      if (++at.done == ids.size()) ++at.i, at.done = 0;
    }
  });
  if (N > 0) score(model, state, Matrix(state.last).rows_from(0, N), logits, trace);
  add_lengths(state, more);
}

void forward_all(const Model& model, ModelState& state, std::span<const MoreTokens> more,
                 Matrix logits, const Trace& trace) {
  const std::size_t T = expect_forward(model, state, more);
  expect_shape("logits", logits, {T, model.config().V});
  if (state.options.pass) {
    std::vector<MoreTokens> all(more.begin(), more.end());
    for (MoreTokens& of : all) of.wanted = of.ids.size();
    return forward(model, state, all, logits, trace);
  }
  std::size_t from = 0;
  in_chunks(model, state, more, trace, [&](Matrix x, Embedded) {
    score(model, state, x, logits.rows_from(from, x.rows), trace);
    from += x.rows;
  });
  add_lengths(state, more);
}

void forward(const Model& model, ModelState& state, std::span<const int> ids, Row logits,
             const Trace& trace) {
  const MoreTokens one = {0, ids};
  forward(model, state, {&one, 1}, {logits.data(), 1, logits.size(), logits.size()}, trace);
}

void forward_all(const Model& model, ModelState& state, std::span<const int> ids, Matrix logits,
                 const Trace& trace) {
  const MoreTokens one = {0, ids};
  forward_all(model, state, {&one, 1}, logits, trace);
}

}  // namespace t2t
