#include "13_training/attention/dropout.hpp"

#include <stdexcept>
#include <string>

#include "random.hpp"
#include "rows.hpp"
#include "shapes.hpp"

namespace t2t {

/// The place of a part in its layer. These numbers never change, whatever parts are traced later: a
/// run resumed from a checkpoint drops what it would have dropped then.
static std::uint64_t place_of(Part part) {
  if (part == Part::embedding) return 0;
  if (part == Part::heads) return 7;
  if (part == Part::attention) return 8;
  if (part == Part::feed_forward) return 14;
  throw std::invalid_argument(
      "dropout: wanted the embedding, heads, attention or feed_forward, got " +
      std::string(part_name(part)));
}
static constexpr std::uint64_t places = 18;  // of a layer

void dropout_rows(const Dropout& dropout, Part part, std::size_t layer, Matrix x) {
  const float p = dropout.p;
  expect(p >= 0 && p < 1, "dropout", "a probability from 0 to below 1", p);
  if (p == 0) return;
  // Each pass, layer, part and row has a sequence of its own.
  const std::uint64_t place = layer * places + place_of(part);
  const std::uint64_t seed = seed_of(SeedOf::stream, dropout.pass, place);
  const float scale = 1 / (1 - p);
  for_each_row(x.rows, x.cols, [&](std::size_t t) {
    Random random(seed_of(SeedOf::row, seed, t));
    for (float& value : x.row(t)) value = random.next_uniform() < double(p) ? 0 : scale * value;
  });
}

}  // namespace t2t
