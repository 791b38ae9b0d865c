// Kernels with one mistake each, for the stand-in alone: on a GPU most of them hang or do harm.
#pragma once

#include <string>
#include <vector>

namespace t2t {

/// Launches one kernel of faults.cu or hopper_faults.cu by its name. Throws std::invalid_argument
/// for an unknown name.
void launch_fault(const std::string& name);
/// False if hopper_faults.cu has no kernel of this name.
bool launch_hopper_fault(const std::string& name);

/// Launches with sizes that no GPU takes.
void launch_sizes(unsigned block_x, unsigned block_z, unsigned grid_x, unsigned grid_y,
                  unsigned shared_bytes);

/// Kernels without a mistake, of one name in two files: 1 where all went well.
int launch_good();
int launch_twin();

}  // namespace t2t
