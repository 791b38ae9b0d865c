// One step of ring attention: the own queries meet the keys and values that are here, which then go
// on to the next rank.
//
//   step 0   rank r has its own block
//   step s   rank r has the block of rank r − s, modulo p, which came from rank r − 1
//
// Only keys and values are sent. What arrives from the rank before belongs to the owner before, and
// the positions of its tokens follow from the owner.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "11_flash_attention/online_softmax.hpp"
#include "19_ranks/start/communicator.hpp"
#include "20_split_models/context_parallel/token_ranges.hpp"
#include "tensor.hpp"

namespace t2t {

/// A sequence of T tokens, divided among ranks, and its heads.
struct DividedSequence {
  std::size_t T;
  TokenOrder order;
  std::size_t H, G;  // query heads, and key and value heads
};

/// The keys and values of one rank's tokens, which travel together.
struct KeyBlock {
  std::size_t owner;                   // the rank whose tokens these are
  std::vector<std::size_t> positions;  // [T_owner] of the tokens in the whole sequence
  Tensor<2> keys_values;               // [T_owner, 2·G·D] of each token: G keys, then G values
};

/// Sends the block to the next rank, and returns the one that the rank before sends. Rank 0 comes
/// after the last rank, and a rank alone gets its own block back. All ranks must call it. Throws as
/// messages.hpp says.
KeyBlock passed_on(const Communicator& ranks, const DividedSequence& sequence,
                   const KeyBlock& block);

/// Lets one head of one query meet a block: of each key of head g that is not after the query, it
/// takes the score, q·k / √D, and the value. Checks nothing: g must be below G, and q must have the
/// D elements of a head.
void meet(OnlineSoftmax& so_far, ConstRow q, std::size_t position, const KeyBlock& block,
          std::size_t g, std::size_t G);

/// Lets all heads of the own queries meet a block. Throws std::invalid_argument unless keys_values
/// has a row of 2·G·D elements for each of its positions.
void meet_all(std::span<OnlineSoftmax> so_far,  // [T_own·H]: token t's head h is number t·H + h
              const DividedSequence& sequence,
              const Tensor<2>& q,                      // [T_own, H·D]
              std::span<const std::size_t> positions,  // [T_own] of the queries in the sequence
              const KeyBlock& block);

}  // namespace t2t
