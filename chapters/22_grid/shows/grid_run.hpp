// A short training of a small model, which the program runs on a grid and on one rank.
#pragma once

#include <cstdint>
#include <vector>

#include "22_grid/training/grid_trainer.hpp"

namespace t2t {

/// Four blocks with eight heads, for at most as many stages and tensor ranks, with a tied table. A
/// mixture has eight experts in place of each network, of which a token uses two.
Config grid_config(std::size_t C = 64);
Config grid_mixture_config();
constexpr std::size_t shown_B = 2, shown_T = 64, shown_steps = 8, shown_shards = 8;
TrainingOptions grid_options(std::uint64_t seed, std::size_t parts);

/// What is trained, whichever ranks do it.
struct GridTask {
  Config config;
  TrainingOptions options;
  std::size_t shards = 0;
  GridBalance balance = {};
};

/// What a run came to on one rank.
struct GridRun {
  std::vector<double> losses, norms;
  GridSent sent;  // in the last step
  GridMemory memory;
  std::size_t rows;  // to and from other ranks' experts, in the last step
  double processor;  // seconds of this process in a step, the least of all
};
/// All ranks of the world must call it.
GridRun run_grid(const Communicator& world, const GridShape& shape, const GridTask& task,
                 const std::vector<int>& ids);

}  // namespace t2t
