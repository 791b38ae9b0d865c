// Starts a program on several processes: it replaces itself by mpirun, which starts it anew so many
// times.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace t2t {

/// The environment variable that tells the processes how many of them were started.
constexpr const char* ranks_variable = "T2T_RANKS";

/// The rank, as text, that a launcher such as mpirun gave this process; null if none started it.
const char* launched_rank();
inline bool is_rank() { return launched_rank() != nullptr; }

/// The launcher: what T2T_MPIRUN in the environment names, or that of the MPI which the program was
/// built with, or the first mpirun in PATH. Throws std::runtime_error, naming Debian's packages,
/// when there is none.
std::string find_mpirun();

/// Becomes mpirun, which starts this program `ranks` times with these arguments, argv[0] first.
/// There may be more ranks than cores, which then share the cores. OpenMP's threads are divided
/// among the ranks. Throws as find_mpirun does, and std::runtime_error when mpirun can't be run.
[[noreturn]] void start_ranks(std::size_t ranks, const std::vector<std::string>& arguments);

/// The same beside this process, which waits for the ranks and returns mpirun's exit status: for
/// ranks that end their work before they end. mpirun would kill them at Ctrl-C. Here the first
/// SIGINT or SIGTERM reaches all ranks as SIGUSR1, and a second one ends them at once.
int run_ranks(std::size_t ranks, const std::vector<std::string>& arguments);

}  // namespace t2t
