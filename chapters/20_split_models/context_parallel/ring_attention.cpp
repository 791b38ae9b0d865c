#include "20_split_models/context_parallel/ring_attention.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "06_gqa/grouped_query_attention.hpp"
#include "11_flash_attention/online_softmax.hpp"
#include "19_ranks/collectives/messages.hpp"
#include "shapes.hpp"

namespace t2t {

/// The keys and values of one rank's tokens, which travel together.
struct KeyBlock {
  std::size_t owner;
  std::vector<std::size_t> positions;
  Tensor<2> keys_values;  // [T_owner, 2·G·D]
};

static std::vector<std::size_t> positions_of(const DividedSequence& sequence, std::size_t size,
                                             std::size_t rank) {
  return positions_in(token_ranges(sequence.order, sequence.T, size, rank));
}

static KeyBlock own_block(const Communicator& ranks, const DividedSequence& sequence,
                          const Tensor<2>& k, const Tensor<2>& v) {
  const std::size_t width = k.shape(1);
  KeyBlock block = {ranks.rank, positions_of(sequence, ranks.size, ranks.rank),
                    empty(k.shape(0), 2 * width)};
  for (std::size_t t = 0; t < k.shape(0); ++t) {
    const Row both = row(block.keys_values, t);
    std::ranges::copy(row(k, t), both.begin());
    std::ranges::copy(row(v, t), both.subspan(width).begin());
  }
  return block;
}

/// Sends the block to the next rank, and returns the one that the rank before sends.
static KeyBlock passed_on(const Communicator& ranks, const DividedSequence& sequence,
                          const KeyBlock& block) {
  const std::size_t owner = (block.owner + ranks.size - 1) % ranks.size;
  KeyBlock next = {owner, positions_of(sequence, ranks.size, owner), {}};
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

/// Lets one head of one query meet the keys of a block that are not after it.
static void meet(OnlineSoftmax& so_far, ConstRow q, std::size_t position, const KeyBlock& block,
                 std::size_t g, std::size_t G) {
  const std::size_t D = q.size();
  for (std::size_t s = 0; s < block.positions.size(); ++s) {
    if (block.positions[s] > position) continue;
    const ConstRow both = row(block.keys_values, s);
    take(so_far, dot(q, both.subspan(g * D, D)) / std::sqrt(float(D)),
         both.subspan((G + g) * D, D));
  }
}

Tensor<2> ring_attention(const Communicator& ranks, const DividedSequence& sequence,
                         const Tensor<2>& q, const Tensor<2>& k, const Tensor<2>& v) {
  const auto& [T, order, H, G] = sequence;
  expect_groups(H, G);
  const std::vector<std::size_t> own = positions_of(sequence, ranks.size, ranks.rank);
  expect(q.shape(1) % H == 0 && q.shape(1) > 0, "columns of q", "a multiple of H", q.shape(1));
  const std::size_t D = q.shape(1) / H;
  expect_shape("q", q, {own.size(), H * D});
  expect_shape("k", k, {own.size(), G * D});
  expect_shape("v", v, {own.size(), G * D});

  std::vector<OnlineSoftmax> so_far(own.size() * H, OnlineSoftmax(D));
  KeyBlock block = own_block(ranks, sequence, k, v);
  for (std::size_t step = 0; step < ranks.size; ++step) {
    if (step > 0) block = passed_on(ranks, sequence, block);
    for (std::size_t t = 0; t < own.size(); ++t)
      for (std::size_t h = 0; h < H; ++h)
        meet(so_far[t * H + h], row(q, t).subspan(h * D, D), own[t], block, group_of(h, H, G), G);
  }

  Tensor<2> out = empty(own.size(), H * D);
  for (std::size_t i = 0; i < so_far.size(); ++i)
    std::ranges::copy(mean(so_far[i]), row(out, i / H).begin() + std::ptrdiff_t(i % H * D));
  return out;
}

Sent ring_attention_cost(const DividedSequence& sequence, std::size_t D, std::size_t size,
                         std::size_t rank) {
  const std::size_t next = (rank + 1) % size;
  std::size_t tokens = 0;
  for (std::size_t other = 0; other < size; ++other)
    if (other != next) tokens += positions_of(sequence, size, other).size();
  if (size == 1) return {};
  return {size - 1, tokens * 2 * sequence.G * D * sizeof(float)};
}

}  // namespace t2t
