// A mixture of experts as a function for chapter 08's block and for chapter 13's training.
#pragma once

#include <memory>
#include <vector>

#include "09_language_model/fast/forward.hpp"
#include "13_training/backward/training_functions.hpp"
#include "14_mixture_of_experts/training/experts_backward.hpp"

namespace t2t {

/// A block's weights as a mixture. They must outlive it.
Mixture mixture_of(const BlockWeights& weights, const BlockSettings& settings,
                   Scoring scoring = Scoring::softmax, ConstRow bias = {});

/// For StateOptions::network: all layers share one scratch. Throws as ExpertsScratch does, when
/// there are no layers, and for layers of different sizes.
MakeNetwork experts_network(Scoring scoring = Scoring::softmax);

/// A mixture that is trained: its functions for the training, and what was seen of it. The
/// functions refer to it, so it must outlive what uses them.
class TrainedExperts {
 public:
  /// For models of L layers with E experts each.
  TrainedExperts(std::size_t L, std::size_t E, Scoring scoring, Balance balance);
  TrainedExperts(const TrainedExperts&) = delete;

  TrainedNetwork network();

  /// The load of each expert in the last forward pass.
  const Tensor<2>& loads() const { return loads_; }  // [L, E]
  /// A layer's routing in the last forward pass.
  const Routed& routed(std::size_t layer) const { return routed_.at(layer); }
  /// The share of choices that the last forward pass dropped, over all layers.
  double dropped() const;
  /// Adjusts the biases after a step, if the balance uses them.
  void after_step();
  ConstRow bias(std::size_t layer) const { return row(bias_, layer); }
  /// Switches the capacity off, as it is when a model is used.
  void without_capacity() { balance_.slack = 0; }

 private:
  Mixture mixture(const Block& block) const;
  void forward(const Block& block, ConstMatrix x, Matrix y);

  Scoring scoring_;
  Balance balance_;
  Tensor<2> loads_, bias_;      // [L, E]
  std::vector<Routed> routed_;  // [L], of the last forward pass
  std::unique_ptr<ExpertsScratch> scratch_;
};

}  // namespace t2t
