// Ranks: a program that starts itself several times, and collectives made of messages between the
// processes.
#include <fmt/format.h>

#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "19_ranks/program/train_task.hpp"
#include "19_ranks/shows/measured_text.hpp"
#include "19_ranks/shows/show_costs.hpp"
#include "19_ranks/shows/show_data_parallel.hpp"
#include "19_ranks/shows/show_ring.hpp"
#include "19_ranks/shows/show_splits.hpp"
#include "19_ranks/start/start_ranks.hpp"
#include "program/print.hpp"
#include "program/program.hpp"
#include "program/solutions.hpp"

using namespace t2t;

/// The same on each rank.
static int tour(const Program& program, const Communicator& world, std::size_t length) {
  silence_others(world);
  const Tensor<2> end = show_ring(world), counts = show_counts(world, length);
  show_times(world);
  const bool enough = world.size <= shown_parts;
  const Tensor<2> losses =
      enough ? show_data_parallel(world, measured_text(), program.seed()) : empty(0, 3);
  if (!enough)
    print_paragraph(fmt::format(
        "The training is left out: a step's batch has {} parts, fewer than ranks.", shown_parts));
  if (world.rank != 0) return 0;
  program.save("ring", end), program.save("counts", counts), program.save("losses", losses);
  return 0;
}

/// The same on each rank.
static int split(const Program& program, const Communicator& world, const std::string& name) {
  silence_others(world);
  const Tensor<2> losses = show_splits(world, measured_text(), program.seed(), splits_named(name));
  if (world.rank == 0) program.save("losses", losses);
  return 0;
}

int main(int argc, char** argv) {
  std::size_t ranks = 4, length = 1'000'003;
  std::string split_name = "all";
  TrainFlags trained;
  Program program("19_ranks",
                  "Many processes, and messages between them with MPI. Shows an all-reduce on a "
                  "ring step by step, what collectives send and how long they take, and a "
                  "training on one process and on many.");
  program.size("ranks", ranks, "how many processes to start; they may be more than cores");
  program.size("length", length, "floats in the vectors of the table of messages");
  program.word("split", split_name,
               "train with each rank storing everything (data), with a sharded optimizer (zero1) "
               "or fully sharded (fsdp), or compare all");
  program.output("train", trained.folder,
                 "train in this folder, and go on if a training has begun there",
                 NamedFile::filled);
  program.size("steps", trained.steps, "steps of that training");
  program.size("every", trained.every, "steps from one checkpoint to the next");
  program.has_solutions(solutions);
  const auto check = [&] {
    constexpr std::size_t most_ranks = 64, most_length = std::size_t(1) << 26;
    if (ranks > most_ranks)
      throw std::invalid_argument(
          fmt::format("--ranks: wanted at most {}, got {}", most_ranks, ranks));
    if (length > most_length)
      throw std::invalid_argument(
          fmt::format("--length: wanted at most {}, got {}", most_length, length));
    splits_named(split_name);
  };
  const auto on_all = [&](const std::function<int(const Communicator&)>& part) {
    if (!is_rank()) start_ranks(ranks, {argv, argv + argc});
    return run_on_ranks("19_ranks", part);
  };
  const Task train = {"train", {"ranks", "split", "steps", "every", "seed"}, [&] {
                        if (split_name == "all") split_name = "fsdp";
                        if (!is_rank())
                          expect_train_task(trained, ranks, split_name, program.seed());
                        return on_all([&](const Communicator& world) {
                          silence_others(world);
                          return train_in_folder(world, trained, split_name, measured_text(),
                                                 program.seed());
                        });
                      }};
  const Task splits = {
      "split", {"ranks", "seed", "save"}, [&] {
        return on_all([&](const Communicator& world) { return split(program, world, split_name); });
      }};
  const Task show = {
      "", {"ranks", "length", "seed", "save"}, [&] {
        return on_all([&](const Communicator& world) { return tour(program, world, length); });
      }};
  return program.run_tasks(argc, argv, {{train, splits, show}, {}, check});
}
