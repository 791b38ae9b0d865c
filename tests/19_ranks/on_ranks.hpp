// Checks of code that runs on several processes.
//
// The program starts itself under mpirun, once, with `most_ranks` processes. Each of them runs all
// checks; a check hands what is to run on p ranks to on_ranks, and gets what all of them returned.
// Since each process gets the same, all take the same way through the checks. The first one
// reports. What waits for a message for longer than a few seconds becomes a failed check.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "19_ranks/start/communicator.hpp"
#include "tensor.hpp"

namespace t2t {

#ifndef T2T_MOST_RANKS
#define T2T_MOST_RANKS 5  // chapter 22's checks need more
#endif
constexpr std::size_t most_ranks = T2T_MOST_RANKS;

struct OnRanks {
  std::string error;                        // of the first rank that threw, or ""
  std::vector<std::vector<float>> results;  // [ranks] of what each returned
};

/// Calls this on the first p ranks. Once a message has not gone through in time, no more calls are
/// made: each further on_ranks returns the same error.
OnRanks on_ranks(std::size_t p, const std::function<std::vector<float>(const Communicator&)>& call);

/// All processes, for checks of what needs no other rank.
const Communicator& all_ranks();

/// "" if each rank returned this, or else the first that did not and its first difference.
std::string first_wrong(const OnRanks& got, const std::vector<float>& want);

/// Whole numbers, so that every order of a sum gives the same: what rank r has, n of them.
std::vector<float> whole_numbers(std::size_t rank, std::size_t n);
/// Others, whose sums are rounded.
std::vector<float> fractions(std::size_t rank, std::size_t n);

}  // namespace t2t
