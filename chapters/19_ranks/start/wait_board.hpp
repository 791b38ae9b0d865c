// Who waits for whom: a page of memory that all ranks of a machine share. A rank that has to wait
// writes down for which rank, and since when. When it has waited too long it reads what the others
// have written, and its error says why nothing moves: a rank computes, or some ranks wait for each
// other in a circle, a deadlock.
#pragma once

#include <cstddef>
#include <string>

#include "19_ranks/start/communicator.hpp"

namespace t2t {

/// The environment variable with the name of the shared file.
constexpr const char* wait_board_variable = "T2T_WAIT_BOARD";

/// Makes the file for so many ranks, and returns its name; "" if it can't be made, in which case
/// errors only say what their own rank knows.
std::string make_wait_board(std::size_t ranks);
/// A rank maps the file into its memory. The last one to come removes its name.
void open_wait_board(const Communicator& world);

/// This rank waits for a rank of the group, to send to it or to receive from it, or no longer.
void note_wait(const Communicator& group, std::size_t other, bool sends);
void note_no_wait();

/// What each rank of this machine waits for, and the circle that this rank waits in, if there is
/// one: "rank 0 waits for rank 1 (5.0 s), rank 1 is in no call". "" without a file.
std::string wait_report();

}  // namespace t2t
