// The engine's interface to a model that is divided among ranks. Rank 0 has the server, the engine
// and its scheduler. Before each step it tells the others what the step reads: which tokens of
// which sequences, at which positions and in which pages.
//
//   rank 0     engine → the step's chunks → broadcast → its part of the model → logits → engine
//   others     ….................. wait   → broadcast → their parts           → wait …
//
// Each rank has the keys and values of its own heads, in pages with the same numbers: the page
// tables that rank 0's engine makes are right on every rank.
//
// Sums over ranks go through the tree of chapter 19, which adds every element in one order. The
// ring's order depends on where an element lies in the vector, and so on the other sequences of a
// step: an answer would then depend on who else is asking (chapter 15, same bits).
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "15_serving/engine/model_runner.hpp"
#include "19_ranks/counting/counts.hpp"
#include "19_ranks/start/communicator.hpp"

namespace t2t {

/// Runs a rank's part of the model. All ranks must call its run with equal chunks, and it throws as
/// messages.hpp says; only rank 0 gets logits. The own model must outlive it. Throws as
/// model_runner does, and std::invalid_argument for swapped pages, which only rank 0 would copy.
ModelRunner runner_of_rank(const Communicator& ranks, const Model& own,
                           const EngineOptions& options);

/// Rank 0's side: what the engine calls. While it lives, the other ranks must be in follow.
class LeadingRank {
 public:
  /// own: its runner_of_rank.
  LeadingRank(const Communicator& ranks, ModelRunner own);
  /// Ends follow on the other ranks.
  ~LeadingRank();
  LeadingRank(const LeadingRank&) = delete;

  /// The runner of the whole model. It must not outlive this. Its run throws as runner_of_rank's;
  /// the ranks are then no longer in the same step, and no further one can be run.
  ModelRunner runner();

 private:
  Communicator ranks_;
  ModelRunner own_;
};

/// The other ranks' side: takes part in each step, until rank 0's LeadingRank ends. It waits for
/// the next step as long as it takes.
void follow(const Communicator& ranks, const ModelRunner& own);

/// What one rank sends at the end of follow.
Sent end_cost(std::size_t ranks, std::size_t rank);
/// What one rank sends in a step of these chunks, which all together ask for `wanted` rows of
/// logits.
Sent step_cost(const Config& whole, std::span<const Chunk> chunks, std::size_t ranks,
               std::size_t rank);

}  // namespace t2t
