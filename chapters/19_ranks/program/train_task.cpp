#include "19_ranks/program/train_task.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "01_embedding/embedding.hpp"
#include "13_training/trainer/checksum.hpp"
#include "19_ranks/collectives/values.hpp"
#include "19_ranks/sharded/fsdp_trainer.hpp"
#include "19_ranks/sharded/zero1_trainer.hpp"
#include "19_ranks/shows/show_splits.hpp"
#include "files/files.hpp"
#include "files/folder_lock.hpp"
#include "linalg.hpp"
#include "utf8_start.hpp"

namespace t2t {

namespace fs = std::filesystem;
static constexpr const char* lock_name = "training.lock";

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
  const fs::path folder = flags.folder, lock = folder / lock_name;
  if (!fs::exists(folder) || (fs::is_directory(folder) && fs::is_empty(folder))) return;
  const std::string want = training_text(flags, seed);
  const std::string got = fs::exists(lock) ? read_file(lock, 4096) : "another folder\n";
  if (got != want)
    throw std::invalid_argument(fmt::format("--train: wanted a new folder, or in {} {}, got {}",
                                            flags.folder, want.substr(0, want.size() - 1),
                                            printable(got.substr(0, got.find('\n')))));
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
  if (fs::exists(fs::path(flags.folder) / "index")) {
    trainer.resume(flags.folder);
    fmt::print("It goes on after step {}.\n", trainer.steps_done());
  }
  while (trainer.steps_done() < flags.steps) {
    const StepReport report = trainer.step();
    const std::size_t done = trainer.steps_done();
    if (done % flags.every != 0 && done != flags.steps) continue;
    trainer.save(flags.folder);
    fmt::print("step {:>6}   loss {:.4f}\n", done, report.loss);
    std::fflush(stdout);
  }
  fmt::print("The weights after {} steps have the checksum {}.\n", trainer.steps_done(),
             checksum_of(weights_of(trainer.model())));
}

int train_in_folder(const Communicator& world, const TrainFlags& flags, const std::string& split,
                    const std::string& text, std::uint64_t seed) {
  set_threads(1);  // a product of two threads may add in another order than one of one
  std::optional<FolderLock> lock;
  if (world.rank == 0) {
    fs::create_directories(flags.folder);
    lock.emplace(flags.folder, lock_name, training_text(flags, seed));
  }
  wait_for_all(world);  // until the folder is there
  if (split == "zero1")
    train<Zero1Trainer>(world, flags, text, seed);
  else
    train<FsdpTrainer>(world, flags, text, seed);
  wait_for_all(world);
  return 0;
}

}  // namespace t2t
