#include "20_split_models/context_parallel/ring_step.hpp"

#include <cmath>

#include "06_gqa/grouped_query_attention.hpp"
#include "19_ranks/collectives/messages.hpp"
#include "shapes.hpp"

namespace t2t {

KeyBlock passed_on(const Communicator& ranks, const DividedSequence& sequence,
                   const KeyBlock& block) {
  const std::size_t owner = (block.owner + ranks.size - 1) % ranks.size;
  KeyBlock next = {
      owner, positions_in(token_ranges(sequence.order, sequence.T, ranks.size, owner)), {}};
  next.keys_values = empty(next.positions.size(), block.keys_values.shape(1));
  exchange(ranks, {block.keys_values.data(), block.keys_values.size()},
           (ranks.rank + 1) % ranks.size, {next.keys_values.data(), next.keys_values.size()},
           (ranks.rank + ranks.size - 1) % ranks.size, Purpose::other);
  return next;
}

static float dot(ConstRow q, ConstRow k) {
  float sum = 0;
  for (std::size_t d = 0; d < q.size(); ++d) sum += q[d] * k[d];
  return sum;
}

void meet(OnlineSoftmax& so_far, ConstRow q, std::size_t position, const KeyBlock& block,
          std::size_t g, std::size_t G) {
  const std::size_t D = q.size();
  for (std::size_t s = 0; s < block.positions.size(); ++s) {
    if (block.positions[s] > position) continue;
    const ConstRow both = row(block.keys_values, s);
    take(so_far, dot(q, both.subspan(g * D, D)) / std::sqrt(float(D)),
         both.subspan((G + g) * D, D));
  }
}

void meet_all(std::span<OnlineSoftmax> so_far, const DividedSequence& sequence, const Tensor<2>& q,
              std::span<const std::size_t> positions, const KeyBlock& block) {
  const std::size_t H = sequence.H, G = sequence.G, D = q.shape(1) / H;
  expect_shape("keys_values", block.keys_values, {block.positions.size(), 2 * G * D});
  for (std::size_t t = 0; t < positions.size(); ++t)
    for (std::size_t h = 0; h < H; ++h) {
      const ConstRow of_head = row(q, t).subspan(h * D, D);
      meet(so_far[t * H + h], of_head, positions[t], block, group_of(h, H, G), G);
    }
}

}  // namespace t2t
