// What must be true of a run's folder: one program writes there, only into what is a run's own, and
// a reader's files stay as they are.
#include <doctest/doctest.h>

#include <csignal>
#include <filesystem>
#include <map>
#include <string>

#include "10_pretrained/file/gguf_bytes.hpp"
#include "13_training/trainer/held_folder.hpp"
#include "files/files.hpp"
#include "support/apart.hpp"
#include "support/refuses.hpp"
#include "support/tried.hpp"

namespace t2t::folder_test {

using Bad = std::runtime_error;

/// The files of a folder with their contents; of a folder that is not there, none.
static std::map<std::string, std::string> contents_of(const std::filesystem::path& folder) {
  std::map<std::string, std::string> contents;
  if (std::filesystem::exists(folder))
    for (const auto& entry : std::filesystem::directory_iterator(folder))
      contents[entry.path().filename().string()] = read_file(entry.path());
  return contents;
}

TEST_CASE("a new run takes a folder that is new or empty, and no other") {
  const Folder folder;
  const RunFolder run{folder.path / "run"};
  for (const std::string mine :
       {"model.gguf", "loss.csv", ".partial-a1B2c3", "run.lock", "notes"}) {
    CAPTURE(mine);
    std::filesystem::create_directory(run.path);
    write_file(run.path / mine, "mine");
    const auto before = contents_of(run.path);
    REFUSES(HeldFolder::for_new_run(run),
            "--run: " + run.path.string() +
                ": wanted a new or an empty folder, got one with other files in it");
    CHECK((contents_of(run.path) == before));
    std::filesystem::remove_all(run.path);
  }
  write_file(run.path, "mine");
  CHECK_THROWS_AS(HeldFolder::for_new_run(run), Bad);
  CHECK(read_file(run.path) == "mine");
}

TEST_CASE("a run that fails before its first checkpoint leaves nothing") {
  const Folder folder;
  const RunFolder run{folder.path / "run"};
  {
    const HeldFolder held = HeldFolder::for_new_run(run);
    for (const std::filesystem::path& file : run.files()) write_file(file, "x");
    CHECK(contents_of(run.path).size() == 7);
  }
  CHECK_FALSE(std::filesystem::exists(run.path));
  std::filesystem::create_directory(run.path);
  { const HeldFolder held = HeldFolder::for_new_run(run); }
  CHECK(std::filesystem::is_empty(run.path));
  {
    HeldFolder held = HeldFolder::for_new_run(run);
    write_file(run.model(), "x");
    held.keep();
  }
  CHECK(contents_of(run.path).size() == 2);
}

TEST_CASE("a run that was killed before its first checkpoint can begin again") {
  const Folder folder;
  const RunFolder run{folder.path / "run"};
  const auto killed = [&] {
    const HeldFolder held = HeldFolder::for_new_run(run);
    for (const char* name : {"train.ids", ".partial-a1B2c3", ".partial-notes"})
      write_file(run.path / name, "x");
    std::raise(SIGKILL);
  };
  CHECK(ending_apart(killed) == "signal 9");
  CHECK(contents_of(run.path).size() == 4);
  const auto begun = tried([&] {
    HeldFolder held = HeldFolder::for_new_run(run);
    held.keep();
    return contents_of(run.path);
  });
  if (begun) {
    CHECK_FALSE(begun->contains(".partial-a1B2c3"));
    CHECK(begun->contains(".partial-notes"));
  }
}

TEST_CASE("two programs are never at work in one folder") {
  const Folder folder;
  const RunFolder run{folder.path / "run"};
  const std::string busy =
      run.path.string() +
      ": another program is at work in this folder; wait for its end, or take another";
  const HeldFolder held = HeldFolder::for_new_run(run);
  write_file(run.path / ".partial-a1B2c3", "half");
  REFUSES_AS(HeldFolder::for_new_run(run), busy, Bad);
  REFUSES(HeldFolder::for_old_run(run), "--resume: " + run.path.string() +
                                            " holds no checkpoint; --run " + run.path.string() +
                                            " begins a run");
  GgufBytes state;
  const GgufBytes entries = GgufBytes().entry("training.step", 0u);
  state.header(0, 1).raw(
      {reinterpret_cast<const char*>(entries.bytes.data()), entries.bytes.size()});
  state.pad();
  write_file(run.state(), {reinterpret_cast<const char*>(state.bytes.data()), state.bytes.size()});
  REFUSES_AS(HeldFolder::for_old_run(run), busy, Bad);
  REFUSES(HeldFolder::for_new_run(run),
          "--run: " + run.path.string() + " holds a run; --resume continues it");
  CHECK(read_file(run.path / ".partial-a1B2c3") == "half");
  CHECK(read_file(run.path / "run.lock").starts_with("A training run"));
}

TEST_CASE("a folder with another file of the checkpoint's name stays as it is") {
  const Folder folder;
  const RunFolder run{folder.path};
  write_file(run.state(), "mine");
  CHECK_THROWS_AS(HeldFolder::for_old_run(run), Bad);
  REFUSES(HeldFolder::for_new_run(run),
          "--run: " + run.path.string() + " holds a run; --resume continues it");
  CHECK(contents_of(run.path).size() == 1);
}

}  // namespace t2t::folder_test
