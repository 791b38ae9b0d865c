// A training in a folder, of which a run's ranks save checkpoints: which training it holds, and the
// steps between one checkpoint and the next.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "19_ranks/start/communicator.hpp"
#include "files/folder_lock.hpp"

namespace t2t {

/// Refuses a folder that holds something else than a training that says `text` of itself.
void expect_training_folder(const std::string& folder, const std::string& text);

/// Makes the folder where it is missing, and locks it on rank 0; other ranks get none. Returns when
/// all ranks see the folder.
std::unique_ptr<FolderLock> lock_training(const Communicator& world, const std::string& folder,
                                          const std::string& text);

/// Steps until `steps` are done, from the folder's last checkpoint if it has one, with another
/// after every few and after the last. Prints the loss at each. Returns the last loss, if a step
/// was left to do.
template <class Trainer>
std::optional<double> train_with_checkpoints(Trainer& trainer, const std::string& folder,
                                             std::size_t steps, std::size_t every) {
  if (std::filesystem::exists(std::filesystem::path(folder) / "index")) {
    trainer.resume(folder);
    fmt::print("It goes on after step {}.\n", trainer.steps_done());
  }
  std::optional<double> last;
  while (trainer.steps_done() < steps) {
    last = trainer.step().loss;
    const std::size_t done = trainer.steps_done();
    if (done % every != 0 && done != steps) continue;
    trainer.save(folder);
    fmt::print("step {:>6}   loss {:.4f}\n", done, *last);
    std::fflush(stdout);
  }
  return last;
}

}  // namespace t2t
