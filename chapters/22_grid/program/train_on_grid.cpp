#include "22_grid/program/train_on_grid.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <optional>
#include <stdexcept>

#include "19_ranks/collectives/values.hpp"
#include "files/files.hpp"
#include "files/folder_lock.hpp"
#include "linalg.hpp"
#include "random.hpp"
#include "utf8_start.hpp"

namespace t2t {

namespace fs = std::filesystem;
static constexpr const char* lock_name = "training.lock";

/// What the lock's file says: batches and rates depend on it.
static std::string training_text(const GridTrainFlags& flags, const GridTask& task) {
  return fmt::format(
      "A training of chapter 22 on a grid, {}, {} micro-batches, seed {}, {} steps\n",
      settings_of(task.config, 0).experts > 0 ? "a mixture" : "a dense model", task.options.parts,
      task.options.seed, flags.steps);
}

void expect_grid_train(const GridTrainFlags& flags, const GridTask& task) {
  const fs::path folder = flags.folder, lock = folder / lock_name;
  if (!fs::exists(folder) || (fs::is_directory(folder) && fs::is_empty(folder))) return;
  const std::string want = training_text(flags, task);
  const std::string got = fs::exists(lock) ? read_file(lock, 4096) : "another folder\n";
  if (got != want)
    throw std::invalid_argument(fmt::format("--train: wanted a new folder, or in {} {}, got {}",
                                            flags.folder, want.substr(0, want.size() - 1),
                                            printable(got.substr(0, got.find('\n')))));
}

/// Steps until the last one, with a checkpoint after every few.
static void train(GridTrainer& trainer, const GridTrainFlags& flags) {
  if (fs::exists(fs::path(flags.folder) / "index")) {
    trainer.resume(flags.folder);
    fmt::print("It goes on after step {}.\n", trainer.steps_done());
  }
  double last = 0;
  while (trainer.steps_done() < flags.steps) {
    last = trainer.step().loss;
    const std::size_t done = trainer.steps_done();
    if (done % flags.every != 0 && done != flags.steps) continue;
    trainer.save(flags.folder);
    fmt::print("step {:>6}   loss {:.4f}\n", done, last);
    std::fflush(stdout);
  }
  if (last > 0) fmt::print("The loss of step {} is {:.17g}.\n", flags.steps, last);
}

int train_on_grid(const Communicator& world, const GridShape& shape, const GridTask& task,
                  const GridTrainFlags& flags, const std::vector<int>& ids) {
  set_threads(1);  // a product of two threads may add in another order than one of one
  std::optional<FolderLock> lock;
  if (world.rank == 0) {
    fs::create_directories(flags.folder);
    lock.emplace(flags.folder, lock_name, training_text(flags, task));
  }
  wait_for_all(world);  // until the folder is there
  const RankGrid grid(world, shape);
  Random random(task.options.seed);
  TrainingOptions options = task.options;
  options.schedule.steps = flags.steps;
  GridTrainer trainer(grid, task.config, draw_model(task.config, random), options, ids, task.shards,
                      task.balance);
  train(trainer, flags);
  wait_for_all(world);
  return 0;
}

}  // namespace t2t
