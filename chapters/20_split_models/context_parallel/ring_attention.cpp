#include "20_split_models/context_parallel/ring_attention.hpp"

#include <algorithm>
#include <vector>

#include "06_gqa/grouped_query_attention.hpp"
#include "shapes.hpp"

namespace t2t {

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
    meet_all(so_far, sequence, q, own, block);
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
