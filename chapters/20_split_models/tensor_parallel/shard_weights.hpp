// The weights of one rank: cut out of a model in memory, or read from a file, of which no rank asks
// for more than its own rows and columns.
//
// The embedding and the head of a rank's model are [V, C], as the whole model's, with zeros in the
// rows of other ranks' tokens. The zeros take no memory (chapter 10's with_zeros).
#pragma once

#include <cstdint>

#include "10_pretrained/model/load_model.hpp"
#include "20_split_models/tensor_parallel/shards.hpp"

namespace t2t {

/// What a table with a row for each token holds: rows of zeros for other ranks' tokens, or the own
/// rows alone, as floats that can be trained.
enum class Tables { all_rows, own_rows };

/// A rank's part of each tensor of a whole model whose weights are floats. Throws as config_of
/// does, and std::invalid_argument for packed weights.
ModelWeights shard_of(const ModelWeights& weights, const Config& whole, Shard shard,
                      Tables tables = Tables::all_rows);

struct ReadShard {
  Config config;  // of the rank
  ModelWeights weights;
  std::uint64_t bytes;  // of the file's tensors that the rank asked for
  std::size_t unit;     // hidden channels that the file's blocks keep together
};
/// The same from a file. Matrices become floats unless make is given. Throws as expect_tensors,
/// config_of and columns_of do, and std::runtime_error when there is not enough free memory.
ReadShard read_shard(const GgufFile& file, const Config& whole, Shard shard,
                     const MakeWeight& make = {});

}  // namespace t2t
