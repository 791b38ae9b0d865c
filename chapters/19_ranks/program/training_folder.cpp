#include "19_ranks/program/training_folder.hpp"

#include <stdexcept>

#include "19_ranks/collectives/values.hpp"
#include "files/files.hpp"
#include "utf8_start.hpp"

namespace t2t {

namespace fs = std::filesystem;
static constexpr const char* lock_name = "training.lock";

void expect_training_folder(const std::string& folder, const std::string& text) {
  const fs::path lock = fs::path(folder) / lock_name;
  if (!fs::exists(folder) || (fs::is_directory(folder) && fs::is_empty(folder))) return;
  const std::string got = fs::exists(lock) ? read_file(lock, 4096) : "another folder\n";
  if (got != text)
    throw std::invalid_argument(fmt::format("--train: wanted a new folder, or in {} {}, got {}",
                                            folder, text.substr(0, text.size() - 1),
                                            printable(got.substr(0, got.find('\n')))));
}

std::unique_ptr<FolderLock> lock_training(const Communicator& world, const std::string& folder,
                                          const std::string& text) {
  std::unique_ptr<FolderLock> lock;
  if (world.rank == 0) {
    fs::create_directories(folder);
    lock = std::make_unique<FolderLock>(folder, lock_name, text);
  }
  wait_for_all(world);  // until the folder is there
  return lock;
}

}  // namespace t2t
