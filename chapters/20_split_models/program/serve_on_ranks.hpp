// A server whose model is divided among ranks: chapter 16's on rank 0, and the model's parts on
// all.
#pragma once

#include <cstddef>

#include "16_server/program/serve_task.hpp"
#include "19_ranks/start/communicator.hpp"

namespace t2t {

/// Throws what is known before any rank is started: as chapter 16's server does for its flags, for
/// a file that is missing or no model's, for more ranks than its heads can be divided among, and
/// for --swap.
void expect_serve_task(const ServeFlags& flags, std::size_t ranks);

/// All ranks must call it. Returns the exit status once SIGUSR1 told rank 0 to end. Throws as
/// read_shard and chapter 16's server do.
int serve_on_ranks(const Communicator& world, const ServeFlags& flags);

}  // namespace t2t
