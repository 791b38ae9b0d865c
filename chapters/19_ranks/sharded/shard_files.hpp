// A checkpoint of shards, written by all ranks at once and read by any number of them.
//
//   FOLDER/step-40-rank-2-of-4   rank 2's chunk of each weight, then of each mean and square:
//   floats FOLDER/index                 "step 40 ranks 4", then each file's checksum
//
// The index is renamed into place when all files are on the disk, and only then are the files of
// the older step deleted: whenever a run is killed, the index names a whole checkpoint, the last
// one or the new one. Chapter 13's checkpoint.hpp is the same for one process, in one file.
#pragma once

#include <array>
#include <cstddef>
#include <filesystem>
#include <vector>

#include "13_training/trainer/tensor_list.hpp"
#include "19_ranks/start/communicator.hpp"

namespace t2t {

/// This rank's chunks of all weights, means and squares; each list has the same tensors.
using ShardState = std::array<std::vector<ListedTensor>, 3>;

/// Writes a checkpoint into a folder that is there and that all ranks see, and deletes older ones.
/// All ranks must call it. If one of them can't write, all throw std::runtime_error, that rank with
/// the reason and the others with its number; the older checkpoint is then as it was.
void save_shards(const Communicator& ranks, const std::filesystem::path& folder, std::size_t step,
                 const ShardState& state);

/// Reads the folder's checkpoint, written by any number of ranks, and returns its step. All ranks
/// must call it. The files are from outside: if one is missing, has another length or another
/// checksum, all throw std::runtime_error, and the state must not be used.
std::size_t load_shards(const Communicator& ranks, const std::filesystem::path& folder,
                        const ShardState& state);

}  // namespace t2t
