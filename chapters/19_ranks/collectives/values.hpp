// Single values that other ranks need to know, such as a loss or a time.
#pragma once

#include <string>
#include <vector>

#include "19_ranks/start/communicator.hpp"

namespace t2t {

/// The sum of each value over all ranks, the same on each. A value travels as two floats, which
/// keep 48 of its 53 bits. Where all ranks but one have 0, the sum is that one's value. All ranks
/// must call it, with equally many values; throws as messages.hpp says.
std::vector<double> sum_of_values(const Communicator& ranks, const std::vector<double>& values);

/// One value of each rank, in the order of ranks.
std::vector<double> value_of_each(const Communicator& ranks, double value);

/// The largest that a rank has.
double largest_value(const Communicator& ranks, double value);

/// Throws std::runtime_error with these words on all ranks, unless something holds on each of them.
void expect_on_all(const Communicator& ranks, bool holds, const std::string& words);

/// Returns when all ranks have called it.
void wait_for_all(const Communicator& ranks);

}  // namespace t2t
