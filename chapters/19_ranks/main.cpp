// Ranks: a program that starts itself several times, and collectives made of messages between the
// processes.
#include <fmt/format.h>

#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

#include "19_ranks/shows/show_costs.hpp"
#include "19_ranks/shows/show_ring.hpp"
#include "19_ranks/start/start_ranks.hpp"
#include "program/program.hpp"
#include "program/solutions.hpp"

using namespace t2t;

/// The same on each rank; only rank 0 writes to the terminal and to files.
static int tour(const Program& program, std::size_t length) {
  const Mpi mpi;
  const Communicator& world = mpi.world();
  if (world.rank != 0 && std::freopen("/dev/null", "w", stdout) == nullptr)
    throw std::runtime_error("/dev/null can't be opened");
  const Tensor<2> end = show_ring(world), counts = show_counts(world, length);
  show_times(world);
  if (world.rank == 0) program.save("ring", end), program.save("counts", counts);
  return 0;
}

int main(int argc, char** argv) {
  std::size_t ranks = 4, length = 1'000'003;
  Program program("19_ranks",
                  "Many processes, and messages between them with MPI. Shows an all-reduce on a "
                  "ring step by step, what collectives send, and how long they take.");
  program.size("ranks", ranks, "how many processes to start; they may be more than cores");
  program.size("length", length, "floats in the vectors of the table of messages");
  program.has_solutions(solutions);
  const auto check = [&] {
    constexpr std::size_t most_ranks = 64, most_length = std::size_t(1) << 26;
    if (ranks > most_ranks)
      throw std::invalid_argument(
          fmt::format("--ranks: wanted at most {}, got {}", most_ranks, ranks));
    if (length > most_length)
      throw std::invalid_argument(
          fmt::format("--length: wanted at most {}, got {}", most_length, length));
  };
  const Task show = {"", {"ranks", "length", "seed", "save"}, [&] {
                       if (!is_rank()) start_ranks(ranks, {argv, argv + argc});
                       return tour(program, length);
                     }};
  return program.run_tasks(argc, argv, {{show}, {}, check});
}
