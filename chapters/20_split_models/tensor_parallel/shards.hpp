// How a model is divided among ranks under tensor parallelism: which heads, hidden channels and
// tokens each rank has, and so which rows or columns of each matrix.
//
//   rows of w_q, w_k, w_v     the own heads       rows of w_gate, w_up    the own hidden channels
//   columns of w_o            the own heads       columns of w_down       the own hidden channels
//   rows of embedding, head   the own tokens      norms                   whole on each rank
//
// The first product of each pair is cut by rows and the second by columns, so that between the two
// no rank needs anything of another one. A bias that is added to a sum over ranks, and learned
// positions, belong to rank 0 alone: the others have zeros. Shoeybi et al. 2019, "Megatron-LM".
//
// Chapter 10's shards are equal; here heads and channels may be divided unevenly.
#pragma once

#include <cstddef>
#include <vector>

#include "10_pretrained/model/shard.hpp"
#include "19_ranks/collectives/range.hpp"

namespace t2t {

/// What a rank has of a block.
struct BlockShard {
  Range heads;                    // of the H query heads
  std::vector<std::size_t> keys;  // [own key heads] which of the G each of them is
  Range hidden;                   // of the F hidden channels
};

/// Divides a block among ranks. With up to G ranks each rank has whole groups: key heads, and all
/// query heads that read them. With more ranks the query heads are divided, and each rank has the
/// key heads that its own read: several ranks then have the same one. Where a rank's key heads
/// serve different numbers of its query heads, it has one for each query head. F is divided in
/// units of `unit` channels, such as the blocks of a packed w_down. All sizes differ by one group,
/// head or unit at most.
///
/// Throws std::invalid_argument, naming the size, for more ranks than heads or than units of F, a
/// rank that is not below the ranks, experts, and norms over all heads together, which no rank has.
BlockShard block_shard(const BlockSettings& whole, Shard shard, std::size_t unit = 1);

/// The Config of a rank's own model: H, G and F of each block are the rank's, all else is the whole
/// model's. Throws as block_shard does, and for more ranks than tokens in the vocabulary.
Config config_of(const Config& whole, Shard shard, std::size_t unit = 1);

/// Which part of a tensor a rank has.
struct Piece {
  std::vector<Range> rows;  // in this order, one after the other
  Range cols;
  bool zeros = false;  // whether the rank has zeros in place of these elements

  std::size_t row_count() const;
  std::size_t size() const { return row_count() * cols.size(); }
};
/// info: the tensor in the whole model. Throws as config_of does.
Piece piece_of(const TensorInfo& info, const Config& whole, Shard shard, std::size_t unit = 1);

/// How many parameters a rank has, zeros left out: of all tensors, and of the blocks' matrices
/// alone, each of which costs a multiplication for each token. Throws as config_of does.
struct ShardSize {
  std::size_t parameters, in_blocks;
};
ShardSize shard_size(const Config& whole, Shard shard, std::size_t unit = 1);

}  // namespace t2t
