#include "22_grid/grid.hpp"

#include <fmt/format.h>

#include <stdexcept>

#include "shapes.hpp"

namespace t2t {

void expect_ranks(const GridShape& shape, std::size_t ranks) {
  expect(shape.data >= 1, "data ranks", "at least 1", shape.data);
  expect(shape.stages >= 1, "stages", "at least 1", shape.stages);
  expect(shape.tensor >= 1, "tensor ranks", "at least 1", shape.tensor);
  expect(shape.experts >= 1, "expert ranks", "at least 1", shape.experts);
  if (shape.ranks() != ranks)
    throw std::invalid_argument(fmt::format(
        "ranks of the grid: wanted {}, for {} data ranks times {} stages times {} tensor ranks "
        "times {} expert ranks, got {}",
        shape.ranks(), shape.data, shape.stages, shape.tensor, shape.experts, ranks));
}

GridPlace place_of(const GridShape& shape, std::size_t rank) {
  const std::size_t of_stage = shape.tensor * shape.experts * shape.data;
  return {.data = rank / (shape.tensor * shape.experts) % shape.data,
          .stage = rank / of_stage,
          .tensor = rank % shape.tensor,
          .expert = rank / shape.tensor % shape.experts};
}

std::size_t rank_at(const GridShape& shape, const GridPlace& place) {
  const std::size_t replica = (place.stage * shape.data + place.data) * shape.experts;
  return (replica + place.expert) * shape.tensor + place.tensor;
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
  const auto [data, stage, tensor, expert] = place_;
  data_ = line_of({0, stage, tensor, expert});
  stages_ = line_of({data, 0, tensor, expert});
  tensor_ = line_of({data, stage, 0, expert});
  experts_ = line_of({data, stage, tensor, 0});
  replicas_ = line_of({0, stage, tensor, 0});
  model_ = ranks_with_equal(world, place_.data);
}

}  // namespace t2t
