// One rank's shard of a model under tensor parallelism, where several processes hold a part of each
// matrix: heads, groups and hidden channels are divided among the ranks, and each rank's block is a
// smaller block.
//
//   rows of w_q, w_k, w_v, w_gate, w_up     with these, and the biases of the same rows, a rank
//                                           computes its own heads and hidden channels
//   columns of w_o, w_down                  with these it computes its part of the sum
//
// The sum of all ranks' parts is what the sublayer adds: chapter 08's BeforeSum sums them. Norms
// and router are whole in all ranks.
//
// Of the embedding and the head a rank keeps the rows of its own tokens. An embedding that another
// rank has is zeros, and so is a logit: StateOptions' `embedded` and `scored` (chapter 09) sum both
// over the ranks.
// Shoeybi et al. 2019, "Megatron-LM".
#pragma once

#include <cstdint>
#include <vector>

#include "09_language_model/fast/model.hpp"
#include "10_pretrained/file/gguf.hpp"

namespace t2t {

struct Shard {
  std::size_t rank = 0, ranks = 1;
};

/// How the ranks divide a tensor between them: by rows, by columns, or not at all. `once` is a bias
/// that is added to a sum over ranks: rank 0 keeps it and the others hold zeros, or it would be
/// added once for each rank. `tokens` is a table with a row for each token: a rank keeps some of
/// the rows, and the others count as zeros.
enum class Split { none, rows, cols, once, tokens };
Split split_of(const TensorInfo& info);

/// The Config of one rank: H, G and F divided by the number of ranks. Throws std::invalid_argument
/// unless the number of ranks divides each of them and rank is below ranks, and when w_o and w_down
/// have biases, which each rank would add.
Config shard_of(Config config, Shard shard);

/// Columns `from` to from + count − 1 of a matrix, as a tensor of their own, [rows, count], whose
/// bytes are copied to `room`. Throws std::invalid_argument for columns that are not whole blocks
/// of the tensor's type.
GgufTensor columns_of(const GgufTensor& tensor, std::size_t from, std::size_t count,
                      std::vector<std::uint8_t>& room);

/// A rank's shard of a tensor that is [info.rows, info.cols] in the rank's model: some of the rows
/// of the whole one, in place, or some of its columns, which are copied to `room`. Throws as
/// columns_of does.
GgufTensor shard_of(const GgufTensor& whole, const TensorInfo& info, Shard shard,
                    std::vector<std::uint8_t>& room);

/// A weight of [info.rows, cols] whose rows are zeros but for those that `part`, the shard of a
/// table with a row for each token, has: its row r is 0 or a row of part, y = x·Wᵀ is 0 in all
/// other columns. With a single rank it is `part`. Throws std::invalid_argument when part has
/// another shape.
Weight with_zeros(Weight part, const TensorInfo& info, Shard shard);

}  // namespace t2t
