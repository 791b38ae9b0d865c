#include "20_split_models/planner/rank_memory.hpp"

#include <algorithm>

namespace t2t {

/// Blocks of a stage, which are one more in some stages if p does not divide L.
static double blocks_of_stage(const ModelShape& model, const Layout& layout) {
  return double((model.L + layout.p - 1) / layout.p);
}

/// Of one block of a rank. Blocks without a router are counted as if they had one.
static double block_of_rank(const ModelShape& model, const Layout& layout) {
  return (other_weights(model) + expert_weights(model) / double(layout.e)) / double(layout.t);
}

double rank_parameters(const ModelShape& model, const Layout& layout) {
  const double tables = double(model.V * model.C) * (layout.p == 1 ? 2 : 1);
  return blocks_of_stage(model, layout) * block_of_rank(model, layout) + tables / double(layout.t);
}

/// Elements that a token's block keeps for its backward pass.
static double kept_by_block(const ModelShape& model) {
  const double networks = double(model.experts == 1 ? 1 : model.active + model.shared);
  return 2.0 * double(model.C + model.H * model.D + model.G * model.D) +
         double(model.matrices - 1) * networks * double(model.F);
}

static double activations(const ModelShape& model, const Job& job, const Layout& layout) {
  const double tokens = double(layout.micro_batch * job.T) / double(layout.c);
  const double in_flight = double(std::min(layout.p, micro_batches(layout, job)));
  const double blocks = blocks_of_stage(model, layout) * in_flight;
  // Only a block's input is kept if the rest is recomputed, and then the rest of one block.
  const double kept = layout.recompute ? blocks * double(model.C) + kept_by_block(model)
                                       : blocks * kept_by_block(model);
  const double logits = layout.p == 1 ? 2 * double(model.V) : 0;  // two elements in 16 bits each
  return 2 * tokens * (kept + logits) / double(layout.t);
}

RankMemory rank_memory(const ModelShape& model, const Job& job, const Layout& layout) {
  const double own = rank_parameters(model, layout);
  // Experts that are divided among e ranks have copies on d/e ranks only.
  const double experts =
      blocks_of_stage(model, layout) * expert_weights(model) / double(layout.e * layout.t);
  const double copies = double(layout.d * layout.c);
  const double shard = (own - experts) / copies + experts * double(layout.e) / copies;
  const double optimizer = 12 * (layout.sharding == Sharding::none ? own : shard);
  if (layout.sharding != Sharding::all)
    return {2 * own, 2 * own, optimizer, activations(model, job, layout)};
  const double gathered = 2 * block_of_rank(model, layout);  // two blocks at a time
  return {2 * (shard + gathered), 2 * (shard + gathered), optimizer,
          activations(model, job, layout)};
}

double total(const RankMemory& memory) {
  return memory.weights + memory.gradients + memory.optimizer + memory.activations;
}

}  // namespace t2t
