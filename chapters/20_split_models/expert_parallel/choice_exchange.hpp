// The way of tokens' rows to the ranks of their experts, and of the results back.
//
//   home:    choices → sorted by expert → counts to the experts' ranks → rows
//   expert:  rows of rank 0, those of rank 1, … → one result for each, in the order in which the
//            rows came → back to the ranks of the tokens
//
// Since a rank's experts are neighbours, the choices sorted by expert are also sorted by rank: they
// are all_to_all's blocks as they lie. A row travels without its token's number. The receiver finds
// the expert of each row from the counts, and home knows where it has sent which choice. Lepikhin
// et al. 2020, "GShard", call the two ways dispatch and combine.
#pragma once

#include <cstddef>
#include <vector>

#include "14_mixture_of_experts/experts.hpp"
#include "19_ranks/start/communicator.hpp"

namespace t2t {

/// What a rank knows of the choices of one layer that go and come.
struct ChoiceExchange {
  Assignment home;  // of the own choices, by expert; after the last expert's come those dropped
  std::vector<std::size_t> to, from;  // [p]: rows for each rank, and from each
  std::vector<std::size_t> experts;   // [rows received]: the own expert of each, counted from 0

  /// The own choices that are not dropped: the first so many of home.choices.
  std::size_t sent() const { return home.begin[home.begin.size() - 2]; }
  std::size_t received() const { return experts.size(); }
};

/// Tells every rank how many rows its experts get from here. A choice whose weight is 0 is dropped:
/// it would add nothing, and is not sent. All ranks must call it, with as many experts. Throws
/// std::invalid_argument as own_experts does and for 2²⁴ choices or more, which floats can't count;
/// and as messages.hpp says.
ChoiceExchange exchange_counts(const Communicator& ranks, const Routed& routed);

/// Sends row r, that of choice home.choices[r], to the rank of its expert. Returns the rows that
/// come, [received, C]. All ranks must call it. Throws std::invalid_argument unless there is a row
/// for each choice that is sent, and as messages.hpp says.
Tensor<2> to_experts(const Communicator& ranks, const ChoiceExchange& exchange,
                     const Tensor<2>& rows);  // [sent, C]

/// The way back, in the same order: returns a row for each that was sent, [sent, C]. Throws as
/// to_experts does.
Tensor<2> to_home(const Communicator& ranks, const ChoiceExchange& exchange,
                  const Tensor<2>& results);  // [received, C]

}  // namespace t2t
