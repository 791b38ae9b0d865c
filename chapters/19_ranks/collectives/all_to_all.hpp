// All-to-all: each rank has a block for every rank. A mixture of experts sends its tokens so, and
// their results back.
#pragma once

#include <cstddef>
#include <span>

#include "19_ranks/start/communicator.hpp"
#include "tensor.hpp"

namespace t2t {

/// Block j of x goes to rank j, and block i of y comes from rank i. The counts are lengths of
/// blocks in elements, one for each rank; they may differ, and be 0. Rank i's count for j must be
/// j's count for i. p − 1 messages from each rank; the block for itself is copied. x and y must not
/// overlap. Throws std::invalid_argument when there are not p counts or their sum is not the row's
/// length, and as messages.hpp says.
void all_to_all(const Communicator& ranks, ConstRow x, std::span<const std::size_t> x_counts, Row y,
                std::span<const std::size_t> y_counts);

}  // namespace t2t
