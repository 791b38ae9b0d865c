// A grid of ranks, and what a training on it stores, sends and learns.
#pragma once

#include <string>

#include "22_grid/shows/grid_run.hpp"

namespace t2t {

/// As in "2 data x 2 stages x 2 tensor", with the expert ranks if there are several.
std::string shape_text(const GridShape& shape);
/// The grid as a picture: a row for each stage, a column for each data rank. Of ranks that divide
/// matrices, a = stands between two, and of ranks that divide experts, a ~.
std::string grid_text(const GridShape& shape, std::size_t L);
void show_grid(const GridShape& shape);

/// All ranks must call these; rank 0 prints.
/// What each rank stores, and sends in each direction, by formula and counted. Throws
/// std::runtime_error when a count is not the formula's.
void show_costs(const Communicator& world, const GridShape& shape, const GridTask& task,
                const GridRun& run);
/// The losses on one rank and on the grid. Returns them, [steps, 2], in nats per byte.
Tensor<2> show_losses(const GridShape& shape, const GridRun& alone, const GridRun& run);

}  // namespace t2t
