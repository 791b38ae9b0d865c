#include "20_split_models/tensor_parallel/sequence_block.hpp"

#include <fmt/format.h>

#include <stdexcept>

#include "07_swiglu/fast/feed_forward_rows.hpp"
#include "19_ranks/collectives/ring.hpp"
#include "linalg.hpp"
#include "shapes.hpp"

namespace t2t {

/// Returns T.
static std::size_t expect_call(const Communicator& ranks, ConstMatrix own, Runs runs,
                               const Block& block, const BlockScratch& scratch) {
  const std::size_t T = own.rows * ranks.size;
  expect_shape("own", own, {own.rows, block.settings().C});
  expect(T >= 1 && T <= scratch.max_rows, "T, the tokens of all ranks",
         fmt::format("1 to {}", scratch.max_rows), T);
  std::size_t in_runs = 0;
  for (const Run& run : runs) in_runs += run.rows;
  expect(in_runs == T, "rows of the runs", fmt::format("{}", T), in_runs);
  if (block.settings().norm_place != NormPlace::before)
    throw std::invalid_argument("norm_place: wanted norms before the sublayers, got another place");
  return T;
}

void sequence_block_rows(const Communicator& ranks, Matrix own, Runs runs, const Block& block,
                         const Attention& attention, BlockScratch& scratch) {
  const std::size_t T = expect_call(ranks, own, runs, block, scratch);
  const BlockSettings& s = block.settings();
  const BlockWeights& weights = block.weights();
  const Matrix normed = Matrix(scratch.normed).rows_from(0, T);  // [T, C]
  const Matrix added = Matrix(scratch.added).rows_from(0, T);    // [T, C]
  const auto part = [&](Tensor<2>& of, std::size_t cols) {
    return Matrix(of).rows_from(0, T).cols_from(0, cols);
  };
  const auto own_of = [&](Matrix x) { return x.rows_from(ranks.rank * own.rows, own.rows); };
  const auto read = [&](const NormWeights& gains) {
    norm_rows(own, gains, s.norm, s.eps, own_of(normed));
    ring_all_gather(ranks, {normed.data, T * s.C});
  };
  const auto add = [&] {
    ring_reduce_scatter(ranks, {added.data, T * s.C});
    add_rows(own_of(added), own);
  };

  read(weights.attention_norm);
  const Matrix q = part(scratch.q, s.H * s.D), heads = part(scratch.heads, s.H * s.D);
  const Matrix k = part(scratch.k, s.G * s.D), v = part(scratch.v, s.G * s.D);
  matmul_bt_each(normed, {{weights.w_q, q}, {weights.w_k, k}, {weights.w_v, v}});
  add_bias(weights.b_q, q), add_bias(weights.b_k, k), add_bias(weights.b_v, v);
  attention({block, runs, q, k, v}, heads, {});
  matmul_bt(heads, weights.w_o, added);
  add_bias(weights.b_o, added);
  add();

  read(weights.feed_forward_norm);
  feed_forward_rows(normed, weights.feed_forward, s.activation, scratch.feed_forward, added);
  add();
}

}  // namespace t2t
