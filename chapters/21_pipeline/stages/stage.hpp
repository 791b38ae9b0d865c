// One stage of a pipeline: some consecutive blocks of a model, on one rank.
//
//   forward    receive x (or embed the ids) → own blocks → send x (or head and loss)
//   backward   receive dx (or take the head's) → own blocks, the last first → send dx (or the
//              embedding's gradient)
//
// These are chapter 13's pieces (passes.hpp) with messages at both ends. A stage computes other
// micro-batches between the two passes of one, so that what the forward pass saves lies in a slot
// of its own until the backward pass has read it. There are as many slots as micro-batches in
// flight.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "13_training/backward/model_backward.hpp"
#include "21_pipeline/stages/neighbours.hpp"
#include "21_pipeline/stages/stage_tensors.hpp"
#include "21_pipeline/timeline/stopwatch.hpp"

namespace t2t {

/// What is the same for all micro-batches of a step.
struct StageSizes {
  std::size_t B, T;   // of one micro-batch
  std::size_t parts;  // micro-batches of a step
  std::size_t slots;  // most of them in flight on this stage
};

/// What is computed in place of chapter 13's pieces if the stage has a part of each matrix only, or
/// some of a layer's experts (chapter 22).
struct StageFunctions {
  TrainingFunctions training = {};
  std::function<void(Passes&, const Model&, const Batch&, const Dropout&)> embed = &Passes::embed;
  std::function<void(Passes&, const Batch&, ModelWeights& gradients, const Dropout&)>
      embedding_backward = &Passes::embedding_backward;
  /// Whether the stage has a tensor of its own blocks, whose layers it counts from 0; empty: all.
  std::function<bool(const TensorInfo&)> is_here = {};
};

class Stage {
 public:
  /// Rank r of p is stage r of p. Of the whole model's weights, which must be floats, it copies its
  /// own. Throws as stage_config, Passes and Neighbours do, and std::invalid_argument for no slots.
  Stage(const Communicator& ranks, const Config& whole, const ModelWeights& weights,
        const StageSizes& sizes, StageFunctions functions = {});

  /// A micro-batch's pass forward. Returns Σ loss on the last stage, whose head also adds its
  /// gradients of scale · Σ loss, and 0 on others. The batch is read by the first stage and by the
  /// last. Throws as Passes does, and std::logic_error when all slots are in use.
  double forward(std::size_t part, const Batch& batch, float scale, const Dropout& dropout);
  /// Its pass backward, which adds the gradients of the own blocks, and frees the slot. The dropout
  /// is the forward pass's. Throws std::logic_error for a part that is not in flight.
  void backward(std::size_t part, const Dropout& dropout);
  /// Waits until all messages have been received.
  void finish() { neighbours_.finish(); }

  /// The model of stage_config, in which layers are counted from 0.
  const Model& model() const { return model_; }
  /// The tensors that it learns, and their gradients, in one order.
  std::vector<ListedTensor> weights();
  std::vector<ListedTensor> gradients();

  /// Bytes in all slots: what the forward pass saves, and the last stage's gradient of x.
  std::size_t kept_bytes() const;
  /// What has been computed since clear_times.
  const std::vector<MeasuredOperation>& times() const { return times_; }
  void clear_times() { times_.clear(); }

 private:
  /// What a micro-batch in flight has saved.
  struct Slot {
    bool used = false;
    std::size_t part = 0;
    std::vector<KeptBlock> kept;  // [own blocks]
    Batch batch;                  // first stage only: the ids that the embedding's gradient needs
    Tensor<2> dx;                 // [N, C], last stage only: the head's gradient
  };
  Slot& slot_of(std::size_t part) { return slots_[part % slots_.size()]; }
  double compute_forward(Slot& slot, const Batch& batch, float scale, const Dropout& dropout);
  void compute_backward(const Slot& slot, const Dropout& dropout);

  Config whole_;
  StagePlace place_;
  Model model_;
  ModelWeights gradients_;
  std::vector<Block> blocks_;  // the model's, with their numbers in the whole model
  StageFunctions functions_;
  Passes passes_;
  Neighbours neighbours_;
  std::vector<Slot> slots_;
  std::vector<MeasuredOperation> times_;
};

}  // namespace t2t
