// Chapter 21: a pipeline goes on from its checkpoint, on another number of stages too.
#include <doctest/doctest.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "19_ranks/collectives/values.hpp"
#include "19_ranks/on_ranks.hpp"
#include "21_pipeline/checkpoint/part_files.hpp"
#include "21_pipeline/shared_folder.hpp"
#include "21_pipeline/tiny_pipeline.hpp"
#include "support/first_difference.hpp"
#include "support/refuses.hpp"

namespace t2t::pipeline_checkpoint_tests {

using namespace tiny_pipeline;
namespace fs = std::filesystem;

static PipelineTrainer trainer_of(const Communicator& ranks, const Config& config,
                                  const std::vector<int>& ids, std::uint64_t seed) {
  Random random(seed);
  return PipelineTrainer(ranks, config, draw_model(config, random), options_of(5, 0.1f), ids,
                         PipelineSchedule::one_f_one_b);
}

/// The losses of so many more steps, and this stage's weights after them.
static Floats go_on(PipelineTrainer& trainer, std::size_t steps_more) {
  Floats found;
  for (std::size_t n = 0; n < steps_more; ++n) append_exactly(found, trainer.step().loss);
  append(found, trainer.weights());
  return found;
}

static std::string saved_after(std::size_t p, const Config& config, const fs::path& folder,
                               std::size_t count) {
  return on_ranks(p,
                  [&](const Communicator& ranks) -> Floats {
                    const std::vector<int> ids = tiny_ids();
                    PipelineTrainer trainer = trainer_of(ranks, config, ids, 1);
                    go_on(trainer, count);
                    trainer.save(folder);
                    return {};
                  })
      .error;
}

/// Of a run from other weights, which resumes: the step, then go_on's of three more.
static OnRanks resumed(std::size_t p, const Config& config, const fs::path& folder) {
  return on_ranks(p, [&](const Communicator& ranks) {
    const std::vector<int> ids = tiny_ids();
    PipelineTrainer trainer = trainer_of(ranks, config, ids, 2);
    trainer.resume(folder);
    Floats found = {float(trainer.steps_done())};
    const Floats more = go_on(trainer, 3);
    found.insert(found.end(), more.begin(), more.end());
    return found;
  });
}

/// What a run on p stages that never stopped finds in the three steps after these.
static OnRanks unbroken(std::size_t p, const Config& config, std::size_t step) {
  return on_ranks(p, [&](const Communicator& ranks) {
    const std::vector<int> ids = tiny_ids();
    PipelineTrainer trainer = trainer_of(ranks, config, ids, 1);
    for (std::size_t n = 0; n < step; ++n) trainer.step();
    Floats found = {float(step)};
    const Floats more = go_on(trainer, 3);
    found.insert(found.end(), more.begin(), more.end());
    return found;
  });
}

TEST_CASE("a run goes on from its checkpoint with the same bits, on any number of stages") {
  for (const Config& config : {llama(true), gpt2(false)}) {
    const SharedFolder folder("t2t-stages");
    REQUIRE(saved_after(3, config, folder.path, 2) == "");
    for (const std::size_t p : {1, 2, 3, 5}) {
      CAPTURE(p);
      const OnRanks want = unbroken(p, config, 2), got = resumed(p, config, folder.path);
      CHECK(want.error == "");
      CHECK(got.error == "");
      CHECK((got.results == want.results));
    }
  }
}

TEST_CASE("a file that is damaged, short or missing is an error on all ranks") {
  const Config config = llama(true);
  const SharedFolder folder("t2t-stages");
  REQUIRE(saved_after(2, config, folder.path, 1) == "");
  const fs::path file = folder.path / "step-1-rank-1-of-2";
  const auto refused = [&](const std::string& words) {
    const std::string error = resumed(3, config, folder.path).error;
    INFO(error);
    CHECK(error.find(file.string()) != std::string::npos);
    CHECK(error.find(words) != std::string::npos);
  };
  folder.on_rank_0([&] {
    std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekp(100).put('x');
  });
  refused("its checksum is not the index's");
  folder.on_rank_0([&] { fs::remove(file); });
  refused("");
}

/// A rank's parts of a tensor of four rows and three columns, beside a model's own.
struct Drawing {
  PartState state;
  std::array<Floats, 3> floats;

  Drawing(std::vector<Range> rows, Range cols) {
    state.parts = {{7, std::move(rows), cols}};
    for (std::size_t list = 0; list < 3; ++list) {
      floats[list].resize(state.parts[0].size());
      state.elements[list] = {{{"w", 4, 3, Role::matrix}, floats[list]}};
    }
  }
  Drawing(const Drawing&) = delete;
};
/// Element (r, c) of list n is 100n + 10r + c.
static float element(std::size_t list, std::size_t r, std::size_t c) {
  return float(100 * list + 10 * r + c);
}

TEST_CASE("by hand: two writers with rows, and a reader of other rows and some columns") {
  const SharedFolder folder("t2t-stages");
  const OnRanks got = on_ranks(2, [&](const Communicator& ranks) -> Floats {
    // Rank 0 has rows 3 and 0, in this order, and rank 1 rows 1 and 2.
    Drawing own(ranks.rank == 0 ? std::vector<Range>{{3, 4}, {0, 1}} : std::vector<Range>{{1, 3}},
                {0, 3});
    const std::array<std::size_t, 2> rows =
        ranks.rank == 0 ? std::array<std::size_t, 2>{3, 0} : std::array<std::size_t, 2>{1, 2};
    for (std::size_t list = 0; list < 3; ++list)
      for (std::size_t i = 0; i < 6; ++i) own.floats[list][i] = element(list, rows[i / 3], i % 3);
    save_parts(ranks, folder.path, 9, own.state);
    Drawing other({{2, 4}, {0, 1}}, {1, 3});
    Floats found = {float(load_parts(ranks, folder.path, other.state))};
    for (const Floats& list : other.floats) found.insert(found.end(), list.begin(), list.end());
    return found;
  });
  Floats want = {9};
  for (const std::size_t list : {0, 1, 2})
    for (const std::size_t r : {2, 3, 0})
      for (const std::size_t c : {1, 2}) want.push_back(element(list, r, c));
  CHECK(first_wrong(got, want) == "");
}

TEST_CASE("elements that no file has, and other files than these, are refused by name") {
  const SharedFolder folder("t2t-stages");
  const auto read = [&](const Drawing& want) {
    return on_ranks(2,
                    [&](const Communicator& ranks) -> Floats {
                      return {float(load_parts(ranks, folder.path, want.state))};
                    })
        .error;
  };
  const Drawing all({{0, 4}}, {0, 3});
  CHECK(read(all).find("index") != std::string::npos);  // there is none
  const OnRanks saved = on_ranks(2, [&](const Communicator& ranks) -> Floats {
    const Drawing own({{ranks.rank, ranks.rank + 1}}, {0, 3});
    save_parts(ranks, folder.path, 1, own.state);
    return {};
  });
  REQUIRE(saved.error == "");
  CHECK(read(all) == folder.path.string() + ": wanted all elements of w, got some");
  CHECK(read(Drawing({{0, 2}}, {2, 3})) == "");

  // Shards of chapter 19 have no table.
  const OnRanks shards = on_ranks(2, [&](const Communicator& ranks) -> Floats {
    Floats some = {-1, 0.5f};
    const std::vector<ListedTensor> list = {{{"w", 4, 1, Role::bias}, some}};
    save_shards(ranks, folder.path, 2, {list, list, list});
    return {};
  });
  REQUIRE(shards.error == "");
  CHECK(read(all) == (folder.path / "step-2-rank-0-of-2").string() +
                         ": wanted a table of parts and their elements, got something else");
  Drawing short_one({{0, 1}}, {0, 3});
  short_one.state.elements[2][0].numbers = {};
  REFUSES(save_parts(all_ranks(), folder.path, 3, short_one.state), "w: wanted 3 elements, got 0");
}

}  // namespace t2t::pipeline_checkpoint_tests
