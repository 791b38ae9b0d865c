// Chapter 19: a run that is killed goes on from its shards, on another number of ranks too.
#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "19_ranks/collectives/values.hpp"
#include "19_ranks/on_ranks.hpp"
#include "19_ranks/tiny_sharded.hpp"

namespace t2t::shard_files_tests {

using namespace tiny_training;
namespace fs = std::filesystem;

/// A folder that all ranks see, new for each check and removed after it.
struct SharedFolder {
  fs::path path;

  SharedFolder() {
    // The parent of all ranks is mpirun, whose number nobody else has.
    path = fs::temp_directory_path() / ("t2t-shards-" + std::to_string(getppid()));
    if (all_ranks().rank == 0) fs::remove_all(path), fs::create_directory(path);
    wait_for_all(all_ranks());
  }
  ~SharedFolder() {
    wait_for_all(all_ranks());
    if (all_ranks().rank == 0) fs::remove_all(path);
    wait_for_all(all_ranks());
  }
};

template <class Trainer = FsdpTrainer>
static Trainer trainer_of(const Communicator& ranks, const std::vector<int>& ids,
                          std::uint64_t seed) {
  return Trainer(ranks, drawn(llama(), seed), options_of(5, 0.1f), ids, SumOrder::pairs);
}

/// The losses of so many more steps, and the weights after them.
template <class Trainer>
static Floats go_on(const Communicator& ranks, Trainer& trainer, std::size_t count) {
  Floats found;
  for (std::size_t n = 0; n < count; ++n) append(found, trainer.step().loss);
  const Floats weights = weights_of(ranks, trainer);
  found.insert(found.end(), weights.begin(), weights.end());
  return found;
}

template <class Trainer = FsdpTrainer>
static OnRanks saved_after(std::size_t p, const fs::path& folder, std::size_t count) {
  return on_ranks(p, [&](const Communicator& ranks) -> Floats {
    const std::vector<int> ids = tiny_ids();
    Trainer trainer = trainer_of<Trainer>(ranks, ids, 1);
    go_on(ranks, trainer, count);
    trainer.save(folder);
    return {};
  });
}

/// The step from which it goes on, then what go_on finds of three more.
template <class Trainer = FsdpTrainer>
static OnRanks resumed(std::size_t p, const fs::path& folder) {
  return on_ranks(p, [&](const Communicator& ranks) {
    const std::vector<int> ids = tiny_ids();
    Trainer trainer = trainer_of<Trainer>(ranks, ids, 2);  // other weights, until it resumes
    trainer.resume(folder);
    Floats found = {float(trainer.steps_done())};
    const Floats more = go_on(ranks, trainer, 3);
    found.insert(found.end(), more.begin(), more.end());
    return found;
  });
}

/// What a run that never stopped finds in its last three steps.
static Floats unbroken(std::size_t step) {
  return on_ranks(1,
                  [&](const Communicator& ranks) {
                    const std::vector<int> ids = tiny_ids();
                    FsdpTrainer trainer = trainer_of(ranks, ids, 1);
                    for (std::size_t n = 0; n < step; ++n) trainer.step();
                    Floats found = {float(step)};
                    const Floats more = go_on(ranks, trainer, 3);
                    found.insert(found.end(), more.begin(), more.end());
                    return found;
                  })
      .results[0];
}

TEST_CASE("a run goes on from its shards with the same bits, on any number of ranks") {
  const SharedFolder folder;
  REQUIRE(saved_after(3, folder.path, 4).error == "");
  const Floats want = unbroken(4);
  for (const std::size_t p : {1, 2, 3, 5}) {
    CAPTURE(p);
    CHECK(first_wrong(resumed(p, folder.path), want) == "");
  }
}

TEST_CASE("a fully sharded run goes on with a sharded optimizer, and the other way round") {
  const SharedFolder folder;
  CHECK(saved_after<Zero1Trainer>(2, folder.path, 4).error == "");
  const Floats want = unbroken(4);
  CHECK(first_wrong(resumed<FsdpTrainer>(3, folder.path), want) == "");
  CHECK(first_wrong(resumed<Zero1Trainer>(5, folder.path), want) == "");
  CHECK(saved_after<FsdpTrainer>(3, folder.path, 4).error == "");
  CHECK(first_wrong(resumed<Zero1Trainer>(2, folder.path), want) == "");
}

/// The names of all files, in order.
static std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder))
    names.push_back(entry.path().filename().string());
  std::ranges::sort(names);
  return names;
}

TEST_CASE("a newer checkpoint takes the older one's place") {
  const SharedFolder folder;
  REQUIRE(saved_after(3, folder.path, 1).error == "");
  REQUIRE(saved_after(2, folder.path, 2).error == "");
  const std::vector<std::string> want = {"index", "step-2-rank-0-of-2", "step-2-rank-1-of-2"};
  CHECK(names_in(folder.path) == want);
}

TEST_CASE("a run that ends between the files of a checkpoint goes on from the one before") {
  const SharedFolder folder;
  REQUIRE(saved_after(3, folder.path, 2).error == "");
  // A folder of its file's name stops rank 1, when other ranks have written theirs.
  const fs::path obstacle = folder.path / "step-3-rank-1-of-3";
  if (all_ranks().rank == 0) fs::create_directory(obstacle);
  wait_for_all(all_ranks());
  const std::string error = saved_after(3, folder.path, 3).error;
  CHECK(error.find("rank 1 has failed") != std::string::npos);
  CHECK(fs::exists(folder.path / "step-3-rank-0-of-3"));
  const Floats want = unbroken(2);
  CHECK(first_wrong(resumed(2, folder.path), want) == "");
  wait_for_all(all_ranks());
}

TEST_CASE("a damaged, short or missing shard is an error on all ranks") {
  const SharedFolder folder;
  REQUIRE(saved_after(2, folder.path, 1).error == "");
  const fs::path file = folder.path / "step-1-rank-1-of-2";
  const auto refused = [&](const std::string& words) {
    const std::string error = resumed(3, folder.path).error;
    INFO(error);
    CHECK(error.find(file.string()) != std::string::npos);
    CHECK(error.find(words) != std::string::npos);
  };
  const auto on_rank_0 = [](const auto& change) {
    if (all_ranks().rank == 0) change();
    wait_for_all(all_ranks());
  };
  on_rank_0([&] {
    std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekp(100).put('x');
  });
  refused("its checksum is not the index's");
  on_rank_0([&] { fs::resize_file(file, fs::file_size(file) - 4); });
  refused("bytes for this model, got");
  on_rank_0([&] { fs::remove(file); });
  refused("");
}

}  // namespace t2t::shard_files_tests
