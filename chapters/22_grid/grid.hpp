// A grid of ranks, on which a training is divided in four ways at once:
//
//   data     the micro-batches of a step     sends all gradients, once in a step
//   stages   the blocks of the model         sends the stream and its gradient, once in each
//                                            micro-batch to each neighbour
//   tensor   every matrix of a block         sends terms of the stream and of its gradient, in four
//                                            sums in each block and micro-batch
//   experts  the experts of a mixture, and   sends tokens to the ranks of their experts and back,
//            the micro-batches as well       in each block and micro-batch
//
// Each rank has a place in all four. Ranks that differ in one number of their places and share the
// others form a line of the grid, and each line has a communicator of its own. The sums of tensor
// parallelism need the fastest links. Its ranks therefore have neighbouring numbers, which
// launchers place on one machine; then come the expert ranks, the data ranks, and last the stages:
//
//   rank = ((stage·data ranks + data)·expert ranks + expert)·tensor ranks + tensor
//
// (Narayanan et al. 2021, "Efficient Large-Scale Language Model Training on GPU Clusters Using
// Megatron-LM".)
#pragma once

#include <cstddef>

#include "19_ranks/start/communicator.hpp"

namespace t2t {

/// How many ranks each direction has.
struct GridShape {
  std::size_t data = 1, stages = 1, tensor = 1, experts = 1;
  std::size_t ranks() const { return data * stages * tensor * experts; }
};
struct GridPlace {
  std::size_t data, stage, tensor, expert = 0;
  bool operator==(const GridPlace&) const = default;
};

/// Throws std::invalid_argument for a direction without ranks, or when there are not as many ranks
/// as the four numbers multiplied.
void expect_ranks(const GridShape& shape, std::size_t ranks);

GridPlace place_of(const GridShape& shape, std::size_t rank);
std::size_t rank_at(const GridShape& shape, const GridPlace& place);

/// The communicators of one rank.
class RankGrid {
 public:
  /// All ranks of `world`, which must outlive it, must make it with equal shapes. Throws as
  /// expect_ranks does.
  RankGrid(const Communicator& world, const GridShape& shape);
  ~RankGrid() {
    for (Communicator* line : {&data_, &stages_, &tensor_, &experts_, &replicas_, &model_})
      free_communicator(*line);
  }
  RankGrid(const RankGrid&) = delete;
  RankGrid& operator=(const RankGrid&) = delete;

  const GridShape& shape() const { return shape_; }
  const GridPlace& place() const { return place_; }
  const Communicator& world() const { return world_; }

  /// The rank's four lines: the ranks whose places differ from its own in this number only, which
  /// is their rank in the line.
  const Communicator& data() const { return data_; }
  const Communicator& stages() const { return stages_; }
  const Communicator& tensor() const { return tensor_; }
  const Communicator& experts() const { return experts_; }
  /// The ranks with the same stage and tensor number: of everything but experts, they have the same
  /// weights, and each has some of the micro-batches.
  const Communicator& replicas() const { return replicas_; }
  /// The ranks with the same data number: together they have each expert once, and everything else
  /// once for each expert rank.
  const Communicator& model() const { return model_; }

 private:
  GridShape shape_;
  GridPlace place_;
  Communicator world_, data_, stages_, tensor_, experts_, replicas_, model_;
};

}  // namespace t2t
