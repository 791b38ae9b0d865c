// A layer's mixture on a grid, forward and backward. It is chapter 20's expert parallelism with
// three differences:
//
//   senders    the rows of each rank of the line are multiplied by a call of their own, and give a
//              gradient of their own: a rank's rows are one micro-batch's, and neither depends on
//              the micro-batches that other ranks compute at the same time
//   shards     each shard has a part of every expert's hidden channels. Its results are terms, and
//              the gradient of a choice's weight is a sum over shards:
//              dweight = Σ over shards of dy·result
//   losses     what balances the load adds to the gradient of the scores
//
// All shards route alike, since all of them have the whole stream and the whole router. The scores'
// gradient is then whole on every shard, and of the router's gradient of x, shard 0 adds all.
#pragma once

#include <functional>

#include "19_ranks/collectives/range.hpp"
#include "19_ranks/counting/counts.hpp"
#include "20_split_models/expert_parallel/parallel_experts.hpp"
#include "20_split_models/tensor_parallel/shard_group.hpp"

namespace t2t {

/// Chapter 20's exchange of rows on a line of expert ranks, with a count of what it sends. Its
/// functions throw as those do.
class ExpertLine {
 public:
  explicit ExpertLine(const Communicator& ranks) : ranks_(ranks) {}

  ChoiceExchange exchange(const Routed& routed);
  Tensor<2> to_experts(const ChoiceExchange& exchange, const Tensor<2>& rows);
  Tensor<2> to_home(const ChoiceExchange& exchange, const Tensor<2>& results);

  const Communicator& ranks() const { return ranks_; }
  /// Since it was made.
  const Sent& sent_by_rank() const { return sent_; }

 private:
  Communicator ranks_;
  Sent sent_;
};

/// The rows in `received` that came from a rank of the line.
Range rows_from(const ChoiceExchange& exchange, std::size_t sender);

/// Writes the shard's term of y, for choices made already. The mixture has the own experts alone,
/// and a router for all. All ranks of the line must call it. Throws as exchange_counts and
/// run_own_experts do.
KeptExperts mixture_forward(ExpertLine& line,
                            ConstMatrix x,  // [T, C]
                            const Mixture& mixture, Routed routed,
                            Matrix y);  // [T, C]

/// What a backward pass needs beside the arguments of the forward pass.
struct MixtureWayBack {
  const KeptExperts& kept;
  ConstMatrix dy;                         // [T, C]
  Matrix dx;                              // [T, C], to be written: the shard's term
  Weight& router;                         // [E, C], the gradient to add to: whole on every shard
  std::span<FeedForwardWeights> experts;  // the own experts' gradients
  /// Called when the gradients of a sender's rows have been added to `experts`.
  std::function<void(std::size_t sender)> added;
  /// Adds the gradient of what balances the load.
  std::function<void(Tensor<2>& dscores)> losses;  // [T, E]
};
/// All ranks of the line and all shards must call it. Throws as messages.hpp says.
void mixture_backward(ExpertLine& line, const ShardGroup& shards,
                      ConstMatrix x,  // [T, C]
                      const Mixture& mixture, const MixtureWayBack& back);

}  // namespace t2t
