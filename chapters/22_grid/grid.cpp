#include "22_grid/grid.hpp"

#include <fmt/format.h>

#include <stdexcept>

#include "shapes.hpp"

namespace t2t {

void expect_ranks(const GridShape& shape, std::size_t ranks) {
  expect(shape.data >= 1, "data ranks", "at least 1", shape.data);
  expect(shape.stages >= 1, "stages", "at least 1", shape.stages);
  expect(shape.tensor >= 1, "tensor ranks", "at least 1", shape.tensor);
  if (shape.ranks() != ranks)
    throw std::invalid_argument(fmt::format(
        "ranks of the grid: wanted {}, for {} data ranks times {} stages times {} tensor ranks, "
        "got {}",
        shape.ranks(), shape.data, shape.stages, shape.tensor, ranks));
}

GridPlace place_of(const GridShape& shape, std::size_t rank) {
  return {rank / shape.tensor % shape.data, rank / (shape.tensor * shape.data),
          rank % shape.tensor};
}

std::size_t rank_at(const GridShape& shape, const GridPlace& place) {
  return (place.stage * shape.data + place.data) * shape.tensor + place.tensor;
}

/// Returns the shape, once the world has as many ranks. A grid begins with this.
static GridShape checked(const GridShape& shape, const Communicator& world) {
  expect_ranks(shape, world.size);
  return shape;
}

RankGrid::RankGrid(const Communicator& world, const GridShape& shape)
    : shape_(checked(shape, world)), place_(place_of(shape, world.rank)), world_(world) {
  // A line is known by the rank that comes first in it.
  const auto line_of = [&](const GridPlace& first) {
    return ranks_with_equal(world, rank_at(shape, first));
  };
  data_ = line_of({0, place_.stage, place_.tensor});
  stages_ = line_of({place_.data, 0, place_.tensor});
  tensor_ = line_of({place_.data, place_.stage, 0});
  model_ = ranks_with_equal(world, place_.data);
}

}  // namespace t2t
