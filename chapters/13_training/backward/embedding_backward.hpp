// The backward pass of the embedding: a token's gradient belongs to the row that was copied for it.
//
//   x[t] = table[ids[t]]        dtable[v] = Σ over the t with ids[t] = v of dx[t]
//
// The gradients of a repeated token add up; a row that no token selected gets none. A tied table
// (chapter 01) gets the head's gradient too; both are added to it.
#pragma once

#include <span>

#include "tensor.hpp"

namespace t2t {

/// dtable[ids[t]] += dx[t] for each t. Allocates nothing. Throws std::invalid_argument for an id
/// outside [0, V) and when shapes disagree.
void add_embedding_gradient(std::span<const int> ids,  // [T]
                            ConstMatrix dx,            // [T, C]
                            Matrix dtable);            // [V, C]

/// The same for learned positions: row t of the table was added to row t of each of B sequences of
/// T tokens. Throws std::invalid_argument when T does not divide the rows, or shapes disagree.
void add_positions_gradient(std::size_t T,
                            ConstMatrix dx,  // [B·T, C]
                            Matrix dtable);  // [T_max, C]

}  // namespace t2t
