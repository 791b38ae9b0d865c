// Expert parallelism in chapter 13's slot for a network: what each layer does forward and backward,
// with what it keeps in between.
#pragma once

#include <vector>

#include "13_training/backward/training_functions.hpp"
#include "20_split_models/expert_parallel/expert_capacity.hpp"
#include "20_split_models/expert_parallel/parallel_experts.hpp"

namespace t2t {

class ParallelExperts {
 public:
  /// For models of L layers, whose network() refers to it: it must outlive what uses it.
  ParallelExperts(const Communicator& ranks, std::size_t L, Scoring scoring,
                  const ExpertCapacity& capacity = {});
  ParallelExperts(const ParallelExperts&) = delete;

  /// All ranks must call its functions for the same layers in the same order. The block's weights
  /// and gradients are of all experts, of which only the own are used. Throws as
  /// parallel_experts_rows and parallel_experts_backward do.
  TrainedNetwork network();

  /// Of the last forward pass.
  const KeptExperts& kept(std::size_t layer) const { return kept_.at(layer); }

 private:
  Mixture own_mixture(const Block& block) const;

  Communicator ranks_;
  Scoring scoring_;
  ExpertCapacity capacity_;
  std::vector<KeptExperts> kept_;  // [L]
};

}  // namespace t2t
