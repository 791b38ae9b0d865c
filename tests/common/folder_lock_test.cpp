// One program at a time in a folder, and what is not our own stays.
#include "files/folder_lock.hpp"

#include <doctest/doctest.h>

#include <csignal>
#include <filesystem>
#include <stdexcept>
#include <string>

#include "files/files.hpp"
#include "support/apart.hpp"
#include "support/refuses.hpp"
#include "support/tried.hpp"

namespace t2t::folder_lock_test {

using Bad = std::runtime_error;

TEST_CASE("a folder is locked as long as somebody holds it, and then free again") {
  const Folder folder;
  const std::string busy =
      folder.path.string() +
      ": another program is at work in this folder; wait for its end, or take another";
  const auto lock = [&] { return FolderLock(folder.path, "x.lock", "says"); };
  {
    const FolderLock held(folder.path, "x.lock", "says");
    CHECK(held.made());
    CHECK(read_file(folder.path / "x.lock") == "says");
    REFUSES_AS(lock(), busy, Bad);
    REFUSES_AS(lock(), busy, Bad);  // and a refusal doesn't take it away
    CHECK(folder.files() == 1);
    const FolderLock other(folder.path, "y.lock", "says");
  }
  CHECK(read_file(folder.path / "x.lock") == "says");
  FolderLock again = lock();
  CHECK_FALSE(again.made());
  again.remove_file();
  CHECK(folder.files() == 1);
  const FolderLock anew = lock();  // of another file, which has the name now
  CHECK(anew.made());
  REFUSES_AS(lock(), busy, Bad);
}

TEST_CASE("a lock of a program that was killed is free") {
  const Folder folder;
  const auto killed = [&] {
    const FolderLock held(folder.path, "x.lock", "says");
    std::raise(SIGKILL);
  };
  CHECK(ending_apart(killed) == "signal 9");
  CHECK(folder.files() == 1);
  const auto lock = tried([&] { return FolderLock(folder.path, "x.lock", "says").made(); });
  CHECK(lock == false);
}

TEST_CASE("what is no file of a lock stays as it is") {
  const Folder folder;
  const std::filesystem::path file = folder.path / "x.lock";
  const auto lock = [&] { return FolderLock(folder.path, "x.lock", "says"); };
  for (const std::string mine : {"mine", "says more", "say"}) {
    write_file(file, mine);
    REFUSES_AS(
        lock(),
        file.string() + ": wanted the file that is locked here, got another; it stays as it is",
        Bad);
    CHECK(read_file(file) == mine);
  }
  std::filesystem::rename(file, folder.path / "mine");
  std::filesystem::create_symlink("mine", file);
  CHECK_THROWS_AS(lock(), Bad);
  CHECK(read_file(folder.path / "mine") == "say");
  std::filesystem::remove(file);
  REFUSES_AS(FolderLock("/no/such/folder", "x.lock", "says"),
             "/no/such/folder/x.lock: can't be written: No such file or directory", Bad);
  write_file(file, "");  // of one who was killed before the first word
  CHECK_NOTHROW(lock());
  CHECK(read_file(file) == "says");
}

}  // namespace t2t::folder_lock_test
