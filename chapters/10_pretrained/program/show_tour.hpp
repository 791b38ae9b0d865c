// What the program shows without flags: the model of a file, its answer to a question, and what
// happens when q and k are rotated in the wrong pairing. For main.cpp.
#pragma once

#include <cstddef>

#include "10_pretrained/chat/session.hpp"
#include "10_pretrained/program/flags.hpp"
#include "random.hpp"

namespace t2t {

/// What is shown when no task is asked for, with or without the weights.
int show_tour(const Flags& flags, std::size_t seed);

/// The same prompt and weights, with q and k rotated in each of the two pairings. Says which one is
/// the session's own, and leaves it in that one.
void show_pairings(Session& session, Random& random);

}  // namespace t2t
