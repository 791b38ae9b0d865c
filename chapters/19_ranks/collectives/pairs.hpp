// A sum whose order does not depend on the number of ranks: its terms are parts, such as the
// gradients of parts of a batch, and the tree of tree.hpp is one over parts, not over ranks. A rank
// that has both terms of an addition adds them; otherwise a message brings the second one.
//
//   part          0   1   2   3   4   5          0 + 1, 2 + 3 and 4 + 5, then (0 + 1) + (2 + 3),
//   on 2 ranks    0   0   0   1   1   1          then the sum of all, on any number of ranks
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "19_ranks/start/communicator.hpp"

namespace t2t {

/// The sum of `parts` rows of equal lengths, in fixed pairs, into own[0] of every rank. A rank's
/// own rows are parts range_of(parts, ranks.size, ranks.rank), and there are at least as many parts
/// as ranks; own's other rows then hold partial sums. Throws std::invalid_argument for another
/// number of rows, and as messages.hpp says.
void pairs_all_reduce(const Communicator& ranks, std::span<std::vector<float>> own,
                      std::size_t parts);

}  // namespace t2t
