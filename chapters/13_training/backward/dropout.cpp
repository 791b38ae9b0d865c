#include "13_training/backward/dropout.hpp"

#include "random.hpp"
#include "rows.hpp"
#include "shapes.hpp"

namespace t2t {

void dropout_rows(const Dropout& dropout, Part part, std::size_t layer, Matrix x) {
  const float p = dropout.p;
  expect(p >= 0 && p < 1, "dropout", "a probability from 0 to below 1", double(p));
  if (p == 0) return;
  // Each pass, layer, part and row has a sequence of its own.
  const std::uint64_t place = layer * part_count + std::size_t(part);
  const std::uint64_t seed = seed_of(SeedOf::stream, dropout.pass, place);
  const float scale = 1 / (1 - p);
  for_each_row(x.rows, x.cols, [&](std::size_t t) {
    Random random(seed_of(SeedOf::row, seed, t));
    for (float& value : x.row(t)) value = random.next_uniform() < double(p) ? 0 : scale * value;
  });
}

}  // namespace t2t
