// The mixtures of one shard of a stage, with what they keep of each micro-batch in flight and what
// balances their load.
//
//   Switch's loss   E · Σ over e of f[e]·P[e]      f[e]: the share of the choices that e gets
//                                                  P[e]: the mean over tokens of p[t,e]
//
// P is a mean over tokens and f another, but a product of means is not the mean of products. If
// each micro-batch takes f and P of its own tokens, the loss asks for an even load in every
// micro-batch; if both are of the whole step's batch, only for one over the batch. The second is
// what one rank computes that has the whole batch in one piece, and needs the counts of all
// micro-batches before the first backward pass: the stages then go through all forward passes first
// (GPipe's schedule), and the ranks that have other micro-batches add their counts, E integers in
// each layer, once in a step. The z-loss is a mean over tokens and needs no counts.
//
// (Qiu et al. 2025, "Demons in the Detail: On Implementing Load Balancing Loss for Training
// Specialized Mixture-of-Expert Models".)
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "13_training/backward/training_functions.hpp"
#include "19_ranks/counting/counts.hpp"
#include "22_grid/experts/mixture_passes.hpp"

namespace t2t {

/// Whose loads Switch's loss takes.
enum class LoadsOf { batch, micro_batch };
struct GridBalance {
  float switch_loss = 0, z_loss = 0;  // factors, 0: none
  LoadsOf loads = LoadsOf::batch;

  bool has_losses() const { return switch_loss > 0 || z_loss > 0; }
  /// Whether all forward passes must come before the first backward pass.
  bool waits_for_counts() const { return switch_loss > 0 && loads == LoadsOf::batch; }
};

/// Chapter 14's balance_loss with loads that are given: returns factor · E · Σ f[e]·P[e], where P
/// is of these tokens, and adds its gradient to dp.
double switch_loss(const Routed& routed, const Tensor<1>& loads,  // [E]
                   float factor, Tensor<2>& dp);                  // [T, E]

/// Sizes of what a shard computes.
struct MixtureSizes {
  Range layers;                  // of the stage, in the whole model
  std::size_t E;                 // experts of a layer
  std::size_t slots;             // micro-batches in flight
  std::size_t own_parts, parts;  // micro-batches of a step, of this rank and of all
};

class GridExperts {
 public:
  /// What is done with the gradients of a sender's rows in a layer, once they are added to the own
  /// experts' gradients.
  using Added = std::function<void(std::size_t layer, std::size_t sender, std::size_t part)>;

  GridExperts(const Communicator& line, const ShardGroup& shards, const MixtureSizes& sizes,
              const GridBalance& balance, Added added);
  GridExperts(const GridExperts&) = delete;  // its network refers to it

  /// Clears what was counted. Then, before each pass: the own micro-batch whose pass comes next.
  void begin_step();
  void begin(std::size_t part) { part_ = part; }
  /// All ranks of the line must call its functions in the same order. Throws as mixture_passes.hpp
  /// says, and std::invalid_argument for networks without a gate.
  TrainedNetwork network();

  /// Adds the counts of the ranks that have the other micro-batches, between the last forward pass
  /// and the first backward pass, if balance.waits_for_counts(). All of them must call it.
  void share_counts(const Communicator& replicas);

  /// What balances a layer's load, times its factor, as the own micro-batch's share of the step's
  /// loss; known after its backward pass.
  double loss(std::size_t layer, std::size_t part) const;
  /// Of the step so far: what went to experts and back, the counts that were shared, and how many
  /// rows went to other ranks or came from them.
  Sent sent_to_experts() const { return line_.sent_by_rank() - sent_before_; }
  const Sent& sent_counts() const { return counted_; }
  std::size_t rows_exchanged() const { return rows_; }

 private:
  Mixture own_mixture(const Block& block) const;
  KeptExperts& kept_of(std::size_t layer);
  void forward(const Block& block, ConstMatrix x, Matrix y);
  void backward(const NetworkCall& call);
  double add_losses(const Routed& routed, std::size_t layer, Tensor<2>& dscores) const;
  Tensor<1> loads_of_loss(const Routed& routed, std::size_t layer) const;

  ExpertLine line_;
  ShardGroup shards_;
  MixtureSizes sizes_;
  GridBalance balance_;
  Added added_;
  std::size_t part_ = 0, rows_ = 0;
  std::vector<KeptExperts> kept_;  // [slots][layers]
  std::vector<double> counts_;     // [layers][E], of the step's choices
  std::vector<double> losses_;     // [own parts][layers]
  Sent sent_before_, counted_;
};

}  // namespace t2t
