// Kernels with one mistake each, for the stand-in alone: on a GPU most of them hang or do harm.
#pragma once

#include <string>
#include <vector>

namespace t2t {

/// Launches one kernel of faults.cu by its name. Throws std::invalid_argument for an unknown name.
void launch_fault(const std::string& name);

/// Launches with sizes that no GPU takes.
void launch_sizes(unsigned block_x, unsigned block_z, unsigned grid_x, unsigned grid_y,
                  unsigned shared_bytes);

/// A kernel without a mistake: 1 where all went well.
int launch_good();

}  // namespace t2t
