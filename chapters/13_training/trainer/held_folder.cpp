#include "13_training/trainer/held_folder.hpp"

#include <fmt/core.h>

#include <iterator>
#include <stdexcept>
#include <system_error>

#include "files/files.hpp"

namespace t2t {

namespace fs = std::filesystem;

static constexpr const char* lock_name = "run.lock";
static constexpr std::string_view lock_says =
    "A training run of Tensor to Token. Whoever trains in this folder holds a lock on this file.\n";

static std::ptrdiff_t count_files(const fs::path& folder) {
  return std::distance(fs::directory_iterator(folder), {});
}

/// Whether the file that is locked says that a run has begun in this folder. It is empty when its
/// maker was killed right then, and then there is no other file.
static bool is_of_a_run(const fs::path& folder) {
  const fs::path file = folder / lock_name;
  if (!fs::is_regular_file(fs::symlink_status(file))) return false;
  const std::string says = read_file(file, lock_says.size() + 1);
  return says == lock_says || (says.empty() && count_files(folder) == 1);
}

static void expect_new(const RunFolder& folder) {
  if (fs::exists(fs::symlink_status(folder.state())))
    throw std::invalid_argument(
        fmt::format("--run: {} holds a run; --resume continues it", folder.path.string()));
  if (count_files(folder.path) > 0 && !is_of_a_run(folder.path))
    throw std::invalid_argument(
        fmt::format("--run: {}: wanted a new or an empty folder, got one with other files in it",
                    folder.path.string()));
}

/// Makes the folder. Returns false when it was there.
static bool make_folder(const fs::path& folder) {
  std::error_code error;
  const bool made = fs::create_directories(folder, error);
  if (!error && !fs::is_directory(folder)) error = std::make_error_code(std::errc::not_a_directory);
  if (error) throw std::runtime_error("--run: " + folder.string() + ": " + error.message());
  return made;
}

HeldFolder::HeldFolder(const RunFolder& folder, bool new_folder, bool kept)
    : folder_(folder),
      new_folder_(new_folder),
      kept_(kept),
      lock_(folder.path, lock_name, lock_says) {
  try {
    if (!kept) expect_new(folder);  // once more, now that nobody else changes it
    expect_room_for_files(folder.path);
  } catch (...) {
    if (lock_.made()) lock_.remove_file();
    throw;
  }
  remove_partial_files(folder.path);
}

HeldFolder HeldFolder::for_new_run(const RunFolder& folder) {
  const bool made = make_folder(folder.path);
  expect_new(folder);
  return {folder, made, false};
}

HeldFolder HeldFolder::for_old_run(const RunFolder& folder) {
  if (!fs::exists(folder.state()))
    throw std::invalid_argument(fmt::format(
        "--resume: {0} holds no checkpoint; --run {0} begins a run", folder.path.string()));
  GgufFile::open(folder.state()).metadata().integer("training.step");  // it is no other file
  return {folder, false, true};
}

HeldFolder::~HeldFolder() {
  if (kept_) return;
  std::error_code ignored;
  for (const fs::path& file : folder_.files()) fs::remove(file, ignored);
  lock_.remove_file();
  if (new_folder_) fs::remove(folder_.path, ignored);
}

}  // namespace t2t
