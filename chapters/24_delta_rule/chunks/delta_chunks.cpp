#include "24_delta_rule/chunks/delta_chunks.hpp"

#include <algorithm>
#include <cmath>

#include "24_delta_rule/chunks/chunk_solve.hpp"
#include "linalg.hpp"
#include "shapes.hpp"

namespace t2t {

Tensor<2> rows_times(const Tensor<1>& factors, Tensor<2> x) {
  for (std::size_t i = 0; i < x.shape(0); ++i)
    for (float& value : row(x, i)) value *= factors(i);
  return x;
}

// [chunk]
DeltaChunk delta_chunk(const DeltaTokens& tokens, StateRule rule, std::size_t first,
                       std::size_t count, const Tensor<2>& state) {
  DeltaChunk chunk;
  chunk.q = copy_of(ConstMatrix(tokens.q).rows_from(first, count));  // [c, D]
  chunk.k = copy_of(ConstMatrix(tokens.k).rows_from(first, count));  // [c, D]
  chunk.u = copy_of(ConstMatrix(tokens.v).rows_from(first, count));  // [c, Dv]
  chunk.sums = running_sums(row(tokens.g).subspan(first, count));
  chunk.decays = chunk_decays(chunk.sums);
  chunk.p = matmul_bt(chunk.q, chunk.k) * chunk.decays;
  if (rule == StateRule::add) return chunk;

  // What the state before the chunk lacks of each value; then what earlier tokens of the chunk add.
  const Tensor<1> beta = xt::view(tokens.beta, xt::range(first, first + count));  // [c]
  const Tensor<1> faded = xt::exp(chunk.sums);                                    // [c]
  chunk.from_state = matmul(chunk.k, state);
  chunk.x = chunk.u - rows_times(faded, chunk.from_state);
  chunk.kk = matmul_bt(chunk.k, chunk.k);
  chunk.a = rows_times(beta, chunk.decays * chunk.kk);
  for (std::size_t i = 0; i < count; ++i) chunk.a(i, i) = 0;
  chunk.u = solve_lower(chunk.a, rows_times(beta, chunk.x));
  return chunk;
}

Tensor<2> state_after(const DeltaChunk& chunk, const Tensor<2>& state) {
  const Tensor<1> left = xt::exp(chunk.last() - chunk.sums);  // [c], h
  Tensor<2> after = std::exp(chunk.last()) * state;           // [D, Dv]
  add_matmul_at(rows_times(left, chunk.k), chunk.u, after);
  return after;
}

Tensor<2> delta_chunks(const DeltaTokens& tokens, StateRule rule, std::size_t chunk,
                       Tensor<2>& state) {
  expect(chunk >= 1, "chunk, the tokens of a chunk", "at least 1", chunk);
  expect_delta(tokens, rule, state);
  Tensor<2> out = empty(tokens.T(), tokens.Dv());  // [T, Dv]
  for (std::size_t t = 0; t < tokens.T(); t += chunk) {
    const std::size_t count = std::min(chunk, tokens.T() - t);
    const DeltaChunk part = delta_chunk(tokens, rule, t, count, state);
    const Tensor<1> faded = xt::exp(part.sums);                     // [c]
    Tensor<2> of_chunk = rows_times(faded, matmul(part.q, state));  // [c, Dv]
    add_matmul(part.p, part.u, of_chunk);
    xt::view(out, xt::range(t, t + count), xt::all()) = of_chunk;
    state = state_after(part, state);
  }
  return out;
}
// [/chunk]

}  // namespace t2t
