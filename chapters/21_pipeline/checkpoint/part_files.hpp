// A checkpoint of a model in parts, which ranks that divide the model in another way can read.
//
//   FOLDER/step-40-rank-2-of-4   what rank 2 has: a table of parts, then the elements of their
//                                weights, of their means and of their squares
//   FOLDER/index                 chapter 19's: the step, how many ranks, and each file's checksum
//
// A part is some rows of one tensor of the whole model, and of these rows a range of columns: a
// whole matrix in a pipeline, or the heads and channels of a tensor parallel rank. The table says
// which, so that a reader needs not know how the writers had divided the model. It looks in every
// file for the elements that it needs itself. Files and index are written by chapter 19's
// shard_files.hpp: whenever a run is killed, the index names a whole checkpoint.
#pragma once

#include <cstddef>
#include <filesystem>
#include <vector>

#include "19_ranks/collectives/range.hpp"
#include "19_ranks/sharded/shard_files.hpp"

namespace t2t {

/// Everything that can be learned in the whole model, in the order of its list. In a tied model the
/// head's copy of the table follows as "head", since the first and the last stage each have one.
std::vector<TensorInfo> tensors_in_parts(const Config& whole);

struct TensorPart {
  std::size_t tensor;  // its number in tensors_in_parts
  std::vector<Range> rows;
  Range cols;

  std::size_t size() const;
};

/// What a rank has of weights, means and squares: each list has a row for each part, whose elements
/// lie row by row.
struct PartState {
  std::vector<TensorPart> parts;
  ShardState elements;
};

/// Writes a checkpoint, and deletes older ones, as save_shards does and throws. A part that several
/// ranks have needs to be in one rank's state only. Throws std::invalid_argument for rows or
/// columns from 2²⁴ on, which floats can't count, and for lists that are not of the parts' sizes.
void save_parts(const Communicator& ranks, const std::filesystem::path& folder, std::size_t step,
                const PartState& state);

/// Fills the state from the folder's checkpoint, and returns its step. All ranks must call it. The
/// files are from outside: if one is missing, is not such a file or has another checksum, or if an
/// element is in none of them, all ranks throw std::runtime_error, which names the file or the
/// tensor; the state must not be used then.
std::size_t load_parts(const Communicator& ranks, const std::filesystem::path& folder,
                       const PartState& state);

}  // namespace t2t
