// A model of which each rank stores a shard, and the rooms in which whole tensors are put together
// when they are needed.
//
//   gather(block 3)    all-gather of each of its tensors from the shards into the room
//   …                  a forward or backward pass reads the room through a Block
//   scatter(block 3)   reduce-scatter of the gradients in their room: each rank keeps its chunk
//
// There is one room for weights and one for gradients, each as large as a model of one block: the
// next block that is gathered takes the place of the last one. All functions but room(), block()
// and the lists are collectives: all ranks must call them, in the same order; they throw as
// messages.hpp says.
#pragma once

#include <cstddef>
#include <vector>

#include "19_ranks/data_parallel/data_trainer.hpp"
#include "19_ranks/sharded/shards.hpp"

namespace t2t {

class ShardedModel {
 public:
  /// Keeps rank 0's weights, cut into shards, for steps of so many parts. Throws
  /// std::invalid_argument when two blocks have other tensors or sizes.
  ShardedModel(const Communicator& ranks, Model model, std::size_t parts, SumOrder order);

  const Config& config() const { return config_; }
  /// A model of one block: what was gathered last.
  const Model& room() const { return room_; }
  /// Block l's view of the room, once it has been gathered.
  Block block(std::size_t l) const;
  /// The room for gradients: those of block l are in blocks[0].
  ModelWeights& gradients() { return gradient_room_; }

  void gather_embedding() { gather(embedding_); }  // and learned positions
  void gather_block(std::size_t l) { gather(unit_of(l)); }
  void gather_head() { gather(head_); }  // and the final norm; a tied table is there still

  /// A round of a step: rank r computes part round·p + r, if there is one. Sends the gradients in
  /// the room, those of this rank's part, adds those of all ranks to the sums of the own shards,
  /// and sets the room to 0.
  void begin_round(std::size_t round);
  void scatter_embedding() { scatter(embedding_); }
  void scatter_block(std::size_t l) { scatter(unit_of(l)); }
  void scatter_head() { scatter(head_); }

  /// This rank's chunk of each of the whole model's tensors, and of the sums of their gradients
  /// over the parts of all rounds.
  const std::vector<ListedTensor>& weights() const { return weights_.list(); }
  const std::vector<ListedTensor>& gradient_sums() const { return sums_[0].list(); }
  /// All weights on every rank, in the order of tensors_of.
  std::vector<float> all_weights() const;
  /// Without an optimizer's.
  HeldBytes held_bytes() const;

 private:
  /// Consecutive tensors: their places in the whole model's list and in the room's.
  struct Unit {
    std::size_t first, in_room, count;
  };
  Unit unit_of(std::size_t l) const;
  void gather(const Unit& unit);
  void scatter(const Unit& unit);
  void add_in_pairs_of_parts(std::size_t tensor, ConstRow whole);

  Communicator ranks_;
  Config config_;
  std::size_t parts_;
  SumOrder order_;
  Shards weights_;
  std::vector<std::size_t> sizes_;  // of all tensors, whole
  std::vector<Shards> sums_;        // of gradients: the one at place k of the tree in sums_[k]
  Model room_;
  ModelWeights gradient_room_;
  std::vector<ListedTensor> in_room_, gradients_in_room_;
  Unit embedding_, first_block_, head_;
  std::vector<Range> added_;  // the parts of this round
  PairTree before_;           // the sums held before it
};

}  // namespace t2t
