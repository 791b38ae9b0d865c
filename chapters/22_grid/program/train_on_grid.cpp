#include "22_grid/program/train_on_grid.hpp"

#include <fmt/format.h>

#include "19_ranks/collectives/values.hpp"
#include "19_ranks/program/training_folder.hpp"
#include "linalg.hpp"
#include "random.hpp"

namespace t2t {

/// What the lock's file says: batches and rates depend on it.
static std::string training_text(const GridTrainFlags& flags, const GridTask& task) {
  return fmt::format(
      "A training of chapter 22 on a grid, {}, {} micro-batches, seed {}, {} steps\n",
      settings_of(task.config, 0).experts > 0 ? "a mixture" : "a dense model", task.options.parts,
      task.options.seed, flags.steps);
}

void expect_grid_train(const GridTrainFlags& flags, const GridTask& task) {
  expect_training_folder(flags.folder, training_text(flags, task));
}

int train_on_grid(const Communicator& world, const GridShape& shape, const GridTask& task,
                  const GridTrainFlags& flags, const std::vector<int>& ids) {
  set_threads(1);  // a product of two threads may add in another order than one of one
  const auto lock = lock_training(world, flags.folder, training_text(flags, task));
  const RankGrid grid(world, shape);
  Random random(task.options.seed);
  TrainingOptions options = task.options;
  options.schedule.steps = flags.steps;
  GridTrainer trainer(grid, task.config, draw_model(task.config, random), options, ids, task.shards,
                      task.balance);
  const auto last = train_with_checkpoints(trainer, flags.folder, flags.steps, flags.every);
  if (last) fmt::print("The loss of step {} is {:.17g}.\n", flags.steps, *last);
  wait_for_all(world);
  return 0;
}

}  // namespace t2t
