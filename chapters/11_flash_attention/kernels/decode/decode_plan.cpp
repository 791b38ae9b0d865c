// Into how many stretches rung 5 cuts the keys, and how much memory they take. Runs on the host.
#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "11_flash_attention/kernels/kernels.hpp"
#include "shapes.hpp"

namespace t2t {

int decode_splits(int tiles, int S, int slots) {
  const int most = std::min((S + 255) / 256, 128);  // stretches of about 256 keys or more
  const auto use = [&](int splits) {                // share of the slots in use, over all rounds
    const long blocks = long(tiles) * splits;
    return double(blocks) / double((blocks + slots - 1) / slots * slots);
  };
  double best = 0;
  for (int splits = 1; splits <= most; ++splits) best = std::max(best, use(splits));
  int splits = 1;
  while (use(splits) < 0.85 * best) ++splits;
  return splits;
}

DecodeSizes decode_scratch(const AttentionCall<bf16>& call, int splits) {
  return {std::size_t(call.B) * call.T * call.H * splits * (call.D + 1),
          std::size_t(call.B) * call.G * packed_tiles(call.T * (call.H / call.G))};
}

DecodeScratch::DecodeScratch(const DecodeSizes& sizes)
    : results(sizes.floats),
      arrived(std::span<const unsigned>(std::vector<unsigned>(sizes.counters))) {}

void expect_room(const DecodeScratch& scratch, const DecodeSizes& needed) {
  expect(scratch.results.size() >= needed.floats, "floats of scratch",
         "at least " + std::to_string(needed.floats), scratch.results.size());
  expect(scratch.arrived.size() >= needed.counters, "counters of scratch",
         "at least " + std::to_string(needed.counters), scratch.arrived.size());
}

}  // namespace t2t
