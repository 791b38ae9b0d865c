// Chapter 22: the places of ranks on a grid, and the lines that they form.
#include <doctest/doctest.h>

#include <vector>

#include "19_ranks/collectives/tree.hpp"
#include "19_ranks/on_ranks.hpp"
#include "22_grid/grid.hpp"
#include "support/refuses.hpp"

namespace t2t::grid_tests {

static const std::vector<GridShape> shapes = {
    {1, 1, 1}, {2, 2, 2}, {1, 2, 4}, {4, 1, 2},    {3, 2, 1},    {1, 1, 8},   {1, 7, 1},
    {5, 1, 1}, {2, 1, 3}, {1, 3, 2}, {2, 1, 2, 2}, {1, 2, 1, 4}, {1, 1, 2, 3}};

TEST_CASE("by hand: tensor ranks are neighbours, then come data ranks, then stages") {
  const GridShape shape = {.data = 2, .stages = 3, .tensor = 4};
  CHECK(shape.ranks() == 24);
  CHECK((place_of(shape, 0) == GridPlace{.data = 0, .stage = 0, .tensor = 0}));
  CHECK((place_of(shape, 1) == GridPlace{.data = 0, .stage = 0, .tensor = 1}));
  CHECK((place_of(shape, 4) == GridPlace{.data = 1, .stage = 0, .tensor = 0}));
  CHECK((place_of(shape, 8) == GridPlace{.data = 0, .stage = 1, .tensor = 0}));
  CHECK((place_of(shape, 23) == GridPlace{.data = 1, .stage = 2, .tensor = 3}));
}

TEST_CASE("by hand: expert ranks lie between tensor ranks and data ranks") {
  const GridShape shape = {.data = 2, .stages = 2, .tensor = 2, .experts = 3};
  CHECK(shape.ranks() == 24);
  CHECK((place_of(shape, 1) == GridPlace{0, 0, 1, 0}));
  CHECK((place_of(shape, 2) == GridPlace{0, 0, 0, 1}));
  CHECK((place_of(shape, 6) == GridPlace{1, 0, 0, 0}));
  CHECK((place_of(shape, 12) == GridPlace{0, 1, 0, 0}));
  CHECK((place_of(shape, 23) == GridPlace{1, 1, 1, 2}));
}

TEST_CASE("every place has one rank") {
  for (const GridShape& shape : shapes)
    for (std::size_t rank = 0; rank < shape.ranks(); ++rank) {
      const GridPlace place = place_of(shape, rank);
      CHECK(place.data < shape.data);
      CHECK(place.stage < shape.stages);
      CHECK(place.tensor < shape.tensor);
      CHECK(place.expert < shape.experts);
      CHECK(rank_at(shape, place) == rank);
    }
}

/// Ranks as bits: which of them are in a line.
template <class IsIn>
static float ranks_with(const GridShape& shape, IsIn is_in) {
  float bits = 0;
  for (std::size_t rank = 0; rank < shape.ranks(); ++rank)
    if (is_in(place_of(shape, rank))) bits += float(1 << rank);
  return bits;
}

TEST_CASE(
    "each line has the ranks that it should, in their order, and waits as long as the world") {
  for (const GridShape& shape : shapes) {
    CAPTURE(shape.data);
    CAPTURE(shape.stages);
    CAPTURE(shape.tensor);
    CAPTURE(shape.experts);
    const OnRanks got = on_ranks(shape.ranks(), [&](const Communicator& ranks) {
      Communicator world = ranks;
      world.limit = 17;
      const RankGrid grid(world, shape);
      std::vector<float> found;
      for (const Communicator& line : {grid.data(), grid.stages(), grid.tensor(), grid.experts(),
                                       grid.replicas(), grid.model()}) {
        float bits = float(1 << ranks.rank);
        tree_all_reduce(line, {&bits, 1});
        found.insert(found.end(), {bits, float(line.rank), float(line.size), float(line.limit)});
      }
      return found;
    });
    REQUIRE(got.error == "");
    for (std::size_t rank = 0; rank < shape.ranks(); ++rank) {
      const GridPlace own = place_of(shape, rank);
      const auto same = [&](bool by_data, bool by_stage, bool by_tensor, bool by_expert) {
        return ranks_with(shape, [&](const GridPlace& other) {
          return (!by_data || other.data == own.data) && (!by_stage || other.stage == own.stage) &&
                 (!by_tensor || other.tensor == own.tensor) &&
                 (!by_expert || other.expert == own.expert);
        });
      };
      std::vector<float> want;
      const auto line = [&](float bits, std::size_t place, std::size_t size) {
        want.insert(want.end(), {bits, float(place), float(size), 17});
      };
      line(same(false, true, true, true), own.data, shape.data);
      line(same(true, false, true, true), own.stage, shape.stages);
      line(same(true, true, false, true), own.tensor, shape.tensor);
      line(same(true, true, true, false), own.expert, shape.experts);
      line(same(false, true, true, false), own.data * shape.experts + own.expert,
           shape.data * shape.experts);
      line(same(true, false, false, false),
           (own.stage * shape.experts + own.expert) * shape.tensor + own.tensor,
           shape.stages * shape.experts * shape.tensor);
      CAPTURE(rank);
      CHECK(got.results[rank] == want);
    }
  }
}

TEST_CASE("another number of ranks, and a direction without any, are refused by name") {
  REFUSES(
      expect_ranks({2, 3, 4}, 23),
      "ranks of the grid: wanted 24, for 2 data ranks times 3 stages times 4 tensor ranks times "
      "1 expert ranks, got 23");
  REFUSES(
      RankGrid(all_ranks(), {3, 1, 3}),
      "ranks of the grid: wanted 9, for 3 data ranks times 1 stages times 3 tensor ranks times 1 "
      "expert ranks, got 8");
  REFUSES(expect_ranks({0, 1, 1}, 0), "data ranks: wanted at least 1, got 0");
  REFUSES(expect_ranks({1, 0, 1}, 0), "stages: wanted at least 1, got 0");
  REFUSES(expect_ranks({1, 1, 0}, 0), "tensor ranks: wanted at least 1, got 0");
  REFUSES(expect_ranks({1, 1, 1, 0}, 0), "expert ranks: wanted at least 1, got 0");
}

}  // namespace t2t::grid_tests
