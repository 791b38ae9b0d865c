#include "24_delta_rule/backward/chunks_backward.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "24_delta_rule/chunks/chunk_solve.hpp"
#include "24_delta_rule/chunks/delta_chunks.hpp"
#include "linalg.hpp"
#include "shapes.hpp"

namespace t2t {

/// The sum of each row of a ⊙ b: [c].
static Tensor<1> row_sums(const Tensor<2>& a, const Tensor<2>& b) { return xt::sum(a * b, {1}); }

/// Adds what a part of G's gradient is: Z_ij raises G_i and lowers G_j.
static void add_pairs(const Tensor<2>& z, Tensor<1>& dsums) {
  const Tensor<1> raised = xt::sum(z, {1}), lowered = xt::sum(z, {0});  // [c]
  dsums += raised - lowered;
}

/// Through u = (I + A)⁻¹·(β ⊙ X): from the gradient of U to those of V, K, β, S₀ and G.
static void back_through_error(const DeltaChunk& chunk, const Tensor<1>& beta,
                               const Tensor<2>& state, const Tensor<2>& du, Tensor<2>& dv,
                               Tensor<2>& dk, Tensor<1>& dbeta, Tensor<2>& before,
                               Tensor<1>& dsums) {
  const Tensor<2> dr = solve_lower_transposed(chunk.a, du);  // [c, Dv]
  const Tensor<2> dx = rows_times(beta, dr);                 // [c, Dv]
  Tensor<2> da = -matmul_bt(dr, chunk.u);                    // [c, c]
  for (std::size_t i = 0; i < da.shape(0); ++i)
    for (std::size_t j = i; j < da.shape(1); ++j) da(i, j) = 0;
  dv = dx;
  dbeta = row_sums(dr, chunk.x) + row_sums(da, chunk.decays * chunk.kk);

  // A holds Γ and K·Kᵀ; X holds e^G ⊙ (K·S₀).
  const Tensor<2> e = rows_times(beta, da * chunk.decays);  // [c, c]
  const Tensor<1> faded = xt::exp(chunk.sums);              // [c]
  const Tensor<2> minus = -rows_times(faded, dx);           // [c, Dv]
  dk += matmul_bt(minus, state) + matmul(Tensor<2>(e + xt::transpose(e)), chunk.k);
  add_matmul_at(chunk.k, minus, before);
  add_pairs(e * chunk.kk, dsums);
  dsums += row_sums(minus, chunk.from_state);
}

/// What one chunk's gradients are, and the gradient of the state before it, which replaces
/// `dstate`.
struct ChunkGradients {
  Tensor<2> q, k, v;     // [c, D], [c, D], [c, Dv]
  Tensor<1> sums, beta;  // [c], of G and β
};

// [chunk]
static ChunkGradients back_through_chunk(const DeltaChunk& chunk, StateRule rule,
                                         const Tensor<1>& beta, const Tensor<2>& state,
                                         const Tensor<2>& dout, Tensor<2>& dstate) {
  const std::size_t c = chunk.sums.size();
  const Tensor<1> faded = xt::exp(chunk.sums), left = xt::exp(chunk.last() - chunk.sums);
  const float last = std::exp(chunk.last());

  // O = e^G ⊙ (Q·S₀) + P·U, and what U gets from O and from the state after the chunk.
  const Tensor<2> of_state = rows_times(faded, dout);            // [c, Dv]
  const Tensor<2> dp = matmul_bt(dout, chunk.u) * chunk.decays;  // [c, c], dP ⊙ Γ
  Tensor<2> du = matmul(rows_times(left, chunk.k), dstate);      // [c, Dv]
  add_matmul_at(chunk.p, dout, du);
  ChunkGradients d{matmul_bt(of_state, state), empty(0, 0), du, xt::zeros<float>({c}),
                   xt::zeros<float>({c})};
  add_matmul(dp, chunk.k, d.q);

  // S = e^(G_c)·S₀ + (h ⊙ K)ᵀ·U.
  d.k = rows_times(left, matmul_bt(chunk.u, dstate));  // [c, D]
  const Tensor<1> eta = row_sums(d.k, chunk.k);        // [c]
  const float kept = last * xt::sum(dstate * state)();
  Tensor<2> before = last * dstate;  // [D, Dv]
  add_matmul_at(chunk.q, of_state, before);
  add_matmul_at(dp, chunk.q, d.k);

  // G stands in Γ, in e^G, in h and in e^(G_c).
  add_pairs(dp * matmul_bt(chunk.q, chunk.k), d.sums);
  d.sums += row_sums(of_state, matmul(chunk.q, state)) - eta;
  d.sums(c - 1) += xt::sum(eta)() + kept;
  if (rule == StateRule::correct)
    back_through_error(chunk, beta, state, du, d.v, d.k, d.beta, before, d.sums);
  dstate = before;
  return d;
}
// [/chunk]

DeltaGradients delta_chunks_backward(const DeltaTokens& tokens, StateRule rule, std::size_t chunk,
                                     const Tensor<2>& state, const Tensor<2>& dout,
                                     const Tensor<2>& dstate) {
  expect(chunk >= 1, "chunk, the tokens of a chunk", "at least 1", chunk);
  expect_delta_backward(tokens, rule, state, dout, dstate);
  const std::size_t T = tokens.T();

  // Forward once more, for the state before each chunk.
  std::vector<Tensor<2>> states = {state};
  for (std::size_t t = 0; t < T; t += chunk)
    states.push_back(state_after(
        delta_chunk(tokens, rule, t, std::min(chunk, T - t), states.back()), states.back()));

  DeltaGradients d{{xt::zeros_like(tokens.q), xt::zeros_like(tokens.k), xt::zeros_like(tokens.v),
                    xt::zeros<float>({T}), xt::zeros<float>({T})},
                   dstate};
  for (std::size_t i = states.size() - 1; i-- > 0;) {
    const std::size_t t = i * chunk, count = std::min(chunk, T - t);
    const auto rows_of_chunk = [&] { return xt::range(t, t + count); };
    Tensor<1> beta = xt::zeros<float>({count});
    if (rule == StateRule::correct) beta = xt::view(tokens.beta, rows_of_chunk());
    const ChunkGradients part =
        back_through_chunk(delta_chunk(tokens, rule, t, count, states[i]), rule, beta, states[i],
                           copy_of(ConstMatrix(dout).rows_from(t, count)), d.state);
    xt::view(d.tokens.q, rows_of_chunk(), xt::all()) = part.q;
    xt::view(d.tokens.k, rows_of_chunk(), xt::all()) = part.k;
    xt::view(d.tokens.v, rows_of_chunk(), xt::all()) = part.v;
    xt::view(d.tokens.beta, rows_of_chunk()) = part.beta;
    // g_t is part of all later sums of its chunk.
    float later = 0;
    for (std::size_t j = count; j-- > 0;) d.tokens.g(t + j) = later += part.sums(j);
  }
  return d;
}

}  // namespace t2t
