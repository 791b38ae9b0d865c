// A folder for checks of files that several ranks write and read.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <string>

#include "19_ranks/collectives/values.hpp"
#include "19_ranks/on_ranks.hpp"

namespace t2t {

/// A folder that all ranks see, new for each check and removed after it. All ranks must make it,
/// with equal names.
struct SharedFolder {
  std::filesystem::path path;

  explicit SharedFolder(const std::string& name) {
    // The parent of all ranks is mpirun, whose number nobody else has.
    path = std::filesystem::temp_directory_path() / (name + "-" + std::to_string(getppid()));
    on_rank_0([&] {
      std::filesystem::remove_all(path);
      std::filesystem::create_directory(path);
    });
  }
  ~SharedFolder() {
    wait_for_all(all_ranks());
    on_rank_0([&] { std::filesystem::remove_all(path); });
  }
  SharedFolder(const SharedFolder&) = delete;

  /// Calls this on one rank; the others wait for it.
  template <class Change>
  void on_rank_0(Change change) const {
    if (all_ranks().rank == 0) change();
    wait_for_all(all_ranks());
  }
};

}  // namespace t2t
