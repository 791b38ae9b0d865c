#include "19_ranks/program/train_task.hpp"

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "01_embedding/embedding.hpp"
#include "13_training/trainer/checksum.hpp"
#include "19_ranks/collectives/values.hpp"
#include "19_ranks/program/training_folder.hpp"
#include "19_ranks/sharded/fsdp_trainer.hpp"
#include "19_ranks/sharded/zero1_trainer.hpp"
#include "19_ranks/shows/show_splits.hpp"
#include "linalg.hpp"

namespace t2t {

/// A step's batch has so many parts: the training can run on up to so many ranks.
static constexpr std::size_t parts = 8;

/// What the lock's file says: batches and rates depend on it.
static std::string training_text(const TrainFlags& flags, std::uint64_t seed) {
  return fmt::format("A training of chapter 19 on many ranks, seed {}, {} steps\n", seed,
                     flags.steps);
}

void expect_train_task(const TrainFlags& flags, std::size_t ranks, const std::string& split,
                       std::uint64_t seed) {
  if (split != "zero1" && split != "fsdp")
    throw std::invalid_argument(
        fmt::format("--split: wanted zero1 or fsdp with --train, got {}", split));
  if (ranks > parts)
    throw std::invalid_argument(
        fmt::format("--ranks: wanted at most {} with --train, got {}", parts, ranks));
  expect_training_folder(flags.folder, training_text(flags, seed));
}

static std::string checksum_of(const std::vector<float>& weights) {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(weights.data());
  return Checksum().add({bytes, weights.size() * sizeof(float)}).text();
}

template <class Trainer>
static void train(const Communicator& world, const TrainFlags& flags, const std::string& text,
                  std::uint64_t seed) {
  const std::vector<int> ids = byte_ids(text);
  Random random(seed);
  const Config config = training_config();
  Trainer trainer(world, Model(config, draw_model(config, random)),
                  training_options(parts, seed, flags.steps), ids, SumOrder::pairs);
  train_with_checkpoints(trainer, flags.folder, flags.steps, flags.every);
  fmt::print("The weights after {} steps have the checksum {}.\n", trainer.steps_done(),
             checksum_of(weights_of(trainer.model())));
}

int train_in_folder(const Communicator& world, const TrainFlags& flags, const std::string& split,
                    const std::string& text, std::uint64_t seed) {
  set_threads(1);  // a product of two threads may add in another order than one of one
  const auto lock = lock_training(world, flags.folder, training_text(flags, seed));
  if (split == "zero1")
    train<Zero1Trainer>(world, flags, text, seed);
  else
    train<FsdpTrainer>(world, flags, text, seed);
  wait_for_all(world);
  return 0;
}

}  // namespace t2t
