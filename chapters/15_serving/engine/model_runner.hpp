// The engine's interface to a model: runs it on tokens, keeps their keys and values in pages, and
// returns logits. Tests use something simpler, whose answers can be checked.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "09_language_model/fast/forward.hpp"
#include "09_language_model/fast/model.hpp"
#include "tensor.hpp"

namespace t2t {

/// What one sequence reads in a step: a chunk of its prompt, or its last token, with drafts if any.
struct Chunk {
  std::size_t sequence;                // its index among the running sequences, as in Run
  std::size_t position;                // of the first of the tokens
  std::span<const int> ids;            // at least one
  std::span<const std::size_t> table;  // pages of all positions up to the last of them
  std::size_t wanted;                  // how many of the last ids need logits
};

/// The memory that sequences share, and the limits of a step. vLLM calls `sequences` max_num_seqs,
/// and `budget` max_num_batched_tokens.
struct EngineOptions {
  std::size_t pages = 256;
  std::size_t page_size = 16;  // tokens of a page
  std::size_t sequences = 16;  // that run at the same time
  std::size_t budget = 128;    // tokens of a step
  /// The most prompt tokens in a step in which other sequences decode. A step may always read
  /// `sequences` tokens in all, even if that is more. 0: as many as the budget allows.
  std::size_t max_prefill_tokens = 0;
  std::size_t bits = 32;  // of a key or value: 32 (a float), 8 or 4
  std::size_t swap = 0;   // at most so many copies of preempted sequences' pages (swap space)

  /// How many pages this many tokens need.
  std::size_t pages_for(std::size_t tokens) const { return (tokens + page_size - 1) / page_size; }
};

/// A page's contents in all layers.
using PageCopy = std::vector<std::byte>;

struct ModelRunner {
  EngineOptions options;  // that it was made with
  std::size_t V;          // logits in a row
  std::size_t positions;  // a sequence can have at most so many
  /// Runs the model on all chunks at once and writes their `wanted` rows of logits, in their order.
  std::function<void(std::span<const Chunk> chunks, Matrix logits)> run;
  /// A copy of a page's contents. This and put may be omitted if options.sequences is 1.
  std::function<PageCopy(std::size_t page)> copy_of = {};
  /// Writes into a page what copy_of returned, for this page or another one.
  std::function<void(std::size_t page, std::span<const std::byte> copy)> put = {};
};

/// A model whose keys and values lie in pages. The model must outlive it. Of these options only the
/// functions called during a pass are used: embedded, before_sum and scored, which receives logits.
/// Throws as ModelState and PagedAttention do.
ModelRunner model_runner(const Model& model, const EngineOptions& options,
                         const StateOptions& slots = {});

/// What model_runner's run does: sets the page table of each chunk's sequence, in `tables`
/// [sequences], then runs the model. Throws as forward does.
void run_chunks(const Model& model, ModelState& state, std::span<std::vector<std::size_t>> tables,
                std::span<const Chunk> chunks, Matrix logits);

}  // namespace t2t
