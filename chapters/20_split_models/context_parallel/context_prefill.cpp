#include "20_split_models/context_parallel/context_prefill.hpp"

#include <fmt/format.h>

#include <functional>

#include "09_language_model/fast/forward.hpp"
#include "19_ranks/collectives/tree.hpp"
#include "19_ranks/counting/costs.hpp"
#include "20_split_models/context_parallel/ring_attention.hpp"
#include "shapes.hpp"

namespace t2t {

static std::size_t rows_of(Runs runs) {
  std::size_t rows = 0;
  for (const Run& run : runs) rows += run.rows;
  return rows;
}

static std::size_t checked(const Config& config, std::size_t T) {
  expect(T <= config.T_max, "T, the tokens", fmt::format("at most T_max = {}", config.T_max), T);
  return T;
}

ContextPrefill::ContextPrefill(const Communicator& ranks, const Model& model, std::size_t T)
    : ranks_(ranks),
      model_(model),
      T_(checked(model.config(), T)),
      attention_(ranks, settings_of_all(model.config()), T),
      scratch_(settings_of_all(model.config()), rows_of(attention_.runs())),
      x_(empty(scratch_.max_rows, model.config().block.C)) {}

/// In a zigzag, rank 0 has the last token.
void ContextPrefill::logits_of_last(std::span<const int> ids, Row logits) {
  expect(ids.size() == T_, "ids", fmt::format("{}", T_), ids.size());
  const std::size_t V = model_.config().V;
  expect(logits.size() == V, "logits", fmt::format("V = {}", V), logits.size());
  for_each_run(attention_.runs(), [&](const Run& run, std::size_t first) {
    embed_tokens(model_, ids.subspan(run.position, run.rows), run.position,
                 Matrix(x_).rows_from(first, run.rows));
  });
  run_layers(model_, x_, attention_.runs(), {.attention = std::ref(attention_)}, scratch_);
  if (ranks_.rank == 0)
    logits_of(model_, Matrix(x_).rows_from(x_.shape(0) - 1, 1), {logits.data(), 1, V, V});
  tree_broadcast(ranks_, logits);
}

std::size_t ContextPrefill::bytes() const {
  const BlockScratch& s = scratch_;
  std::size_t floats = x_.size();
  for (const Tensor<2>* x :
       {&s.normed, &s.q, &s.k, &s.v, &s.heads, &s.added, &s.feed_forward.gate, &s.feed_forward.up})
    floats += x->size();
  return floats * sizeof(float) + attention_.bytes();
}

std::size_t context_prefill_bytes(const Config& config, std::size_t T, std::size_t size,
                                  std::size_t rank) {
  const BlockSettings& s = config.block;
  const std::size_t own = tokens_in(token_ranges(TokenOrder::zigzag, T, size, rank));
  const std::size_t hidden = (is_gated(s.activation) ? 2 : 1) * s.F;
  return own * (3 * s.C + 2 * s.H * s.D + 2 * s.G * s.D + hidden) * sizeof(float) +
         context_attention_bytes(s, T, size, rank);
}

Sent context_prefill_cost(const Config& config, std::size_t T, std::size_t size, std::size_t rank) {
  const BlockSettings& s = config.block;
  const Sent ring = ring_attention_cost({T, TokenOrder::zigzag, s.H, s.G}, s.D, size, rank);
  // The logits go down the tree only.
  const std::uint64_t down =
      tree_all_reduce_cost(config.V, size, rank).messages - (rank == 0 ? 0 : 1);
  return {config.L * ring.messages + down, config.L * ring.bytes + down * config.V * sizeof(float)};
}

}  // namespace t2t
