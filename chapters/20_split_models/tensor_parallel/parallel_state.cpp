#include "20_split_models/tensor_parallel/parallel_state.hpp"

#include <utility>

#include "19_ranks/counting/costs.hpp"
#include "shapes.hpp"

namespace t2t {

void sum_over_ranks(const ShardGroup& ranks, Matrix x) {
  expect(x.stride == x.cols, "floats between rows", "as many as a row has", x.stride);
  ranks.sum({x.data, x.rows * x.cols});
}

/// Each rank has a range of columns; then all have all.
static void gather_columns(const ShardGroup& ranks, Matrix x) {
  for (std::size_t t = 0; t < x.rows; ++t) ranks.gather(x.row(t));
}

StateOptions parallel_options(const ShardGroup& ranks, StateOptions options) {
  options.embedded = [ranks](Matrix x) { sum_over_ranks(ranks, x); };
  options.before_sum = [ranks](const Block&, Part, ConstMatrix, Matrix added) {
    sum_over_ranks(ranks, added);
  };
  options.scored = [ranks](Matrix logits) { gather_columns(ranks, logits); };
  return options;
}

static Sent times(const Sent& sent, std::size_t n) { return {n * sent.messages, n * sent.bytes}; }

PassCost pass_cost(const Config& whole, std::size_t T, std::size_t scored, std::size_t ranks,
                   std::size_t rank) {
  const Sent sum = ring_all_reduce_cost(T * whole.block.C, ranks, rank);
  const Sent gather = ring_all_gather_cost(whole.V, ranks, rank);
  return {sum, times(sum, whole.L), times(sum, whole.L), times(gather, scored)};
}

double pass_seconds(const Config& whole, const Link& link, std::size_t ranks) {
  const double sum = seconds_of(link, 0, ring_chain(whole.block.C, ranks));
  Sent gathered;  // by the rank with most tokens
  for (std::size_t r = 0; r < ranks; ++r) {
    const Sent sent = ring_all_gather_cost(whole.V, ranks, r);
    if (sent.bytes > gathered.bytes) gathered = sent;
  }
  return double(1 + 2 * whole.L) * sum + seconds_of(link, 0, {gathered, 0});
}

}  // namespace t2t
