// Which tokens of a long sequence a rank has.
//
// Under causal attention, token t reads t + 1 keys. If each rank has T/p neighbouring tokens, the
// last one has almost twice the mean work. In a zigzag, the sequence is cut into 2p chunks, and
// rank r has chunks r and 2p − 1 − r: an early one and a late one (Llama Team 2024, arXiv
// 2407.21783, 3.3.2).
#pragma once

#include <cstddef>
#include <vector>

#include "19_ranks/collectives/range.hpp"

namespace t2t {

enum class TokenOrder { neighbours, zigzag };

/// The ranges of tokens of rank `rank` of `size`, in order; all ranks together have tokens 0 to T −
/// 1 once each. Some are empty if T is small.
std::vector<Range> token_ranges(TokenOrder order, std::size_t T, std::size_t size,
                                std::size_t rank);

/// How many tokens these are.
std::size_t tokens_in(const std::vector<Range>& ranges);

/// The positions of these tokens in the sequence, in order.
std::vector<std::size_t> positions_in(const std::vector<Range>& ranges);

/// How many pairs of a query and a key that it sees a rank computes, for one head: Σ (t + 1).
std::size_t pairs_of(const std::vector<Range>& ranges);

}  // namespace t2t
