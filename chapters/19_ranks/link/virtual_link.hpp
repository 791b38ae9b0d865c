// A link that is not there. Each rank has a clock of its own, on which messages take the time that
// they would take on a link with latency α and bandwidth β:
//
//   computing    the clock grows by the rank's processor time
//   sending      m bytes leave as soon as the rank's link is free, which is busy for m/β, and
//                arrive α later
//   receiving    the clock moves on to the arrival, unless it is later already
//
// Every message is followed by a second one, which is not counted, with the time of its arrival.
// Really waiting would be the same for two ranks, and wrong for more ranks than cores: they take
// turns on a core, but on these clocks they compute at the same time, as on machines of their own.
// (Lamport 1978, "Time, Clocks, and the Ordering of Events in a Distributed System".)
#pragma once

#include <cstddef>
#include <optional>

#include "19_ranks/link/link.hpp"
#include "19_ranks/start/communicator.hpp"

namespace t2t {

enum class Computing { takes_time, takes_none };  // the second one for checks of messages alone

/// Sets this rank's clock to 0, and lets messages take the time of this link from here on; without
/// a link there is no clock. All ranks must call it, with no message under way: after wait_for_all.
/// Throws std::invalid_argument unless α is at least 0 and β above 0.
void set_virtual_link(const std::optional<Link>& link, Computing computing = Computing::takes_time);

/// Seconds on this rank's clock, and those of them in which it computed, with one thread; 0 without
/// a link.
double virtual_seconds();
double virtual_computing();

/// For messages.hpp: a message leaves for a rank, or has come from one; waiting is no computing.
void link_sends(const Communicator& ranks, std::size_t to, std::size_t bytes, int tag);
void link_received(const Communicator& ranks, std::size_t from, int tag);
void link_waits();
void link_goes_on();

}  // namespace t2t
