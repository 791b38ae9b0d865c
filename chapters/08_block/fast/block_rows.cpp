#include "08_block/fast/block_rows.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <stdexcept>

#include "07_swiglu/fast/feed_forward_rows.hpp"
#include "linalg.hpp"
#include "shapes.hpp"

namespace t2t {

Block::Block(const BlockSettings& settings, const BlockWeights& weights, std::size_t layer)
    : settings_(settings), weights_(&weights), layer_(layer) {
  expect_settings(settings);
  expect_weights(weights, settings);
}

static FeedForwardScratch network_scratch(std::span<const BlockSettings> layers,
                                          std::size_t max_rows) {
  const std::size_t F = widest(layers, [](const BlockSettings& s) { return s.F; });
  const bool gated =
      std::ranges::any_of(layers, [](const BlockSettings& s) { return is_gated(s.activation); });
  return {max_rows, F, gated ? Activation::swiglu : Activation::relu};
}

BlockScratch::BlockScratch(std::span<const BlockSettings> layers, std::size_t max_rows)
    : max_rows(max_rows), feed_forward(network_scratch(layers, max_rows)) {
  expect(max_rows >= 1, "max_rows, the rows of a call", "at least 1", max_rows);
  expect(!layers.empty(), "layers", "at least 1", 0);
  const std::size_t C = layers[0].C;
  for (const BlockSettings& settings : layers) {
    expect_settings(settings);
    if (settings.C != C)
      throw std::invalid_argument(
          fmt::format("C, the width: wanted {} in every layer, got {}", C, settings.C));
  }
  const std::size_t HD = widest(layers, [](const BlockSettings& s) { return s.H * s.D; });
  const std::size_t GD = widest(layers, [](const BlockSettings& s) { return s.G * s.D; });
  normed = empty(max_rows, C);
  q = empty(max_rows, HD);
  k = empty(max_rows, GD);
  v = empty(max_rows, GD);
  heads = empty(max_rows, HD);
  added = empty(max_rows, C);
}

/// Checks what can differ from call to call, before anything is written.
static void expect_call(ConstMatrix x, const Block& block, const BlockFunctions& functions,
                        const BlockScratch& scratch) {
  const BlockSettings& s = block.settings();
  expect_shape("x", x, {x.rows, s.C});
  const std::size_t HD = s.H * s.D, GD = s.G * s.D;
  expect(x.rows >= 1, "T, the rows of x", "at least 1", 0);
  if (x.rows > scratch.max_rows)
    refuse("T, the rows of x",
           fmt::format("at most the {} that the scratch is made for", scratch.max_rows), x.rows);
  const std::size_t made_for[] = {scratch.normed.shape(1), scratch.q.shape(1), scratch.k.shape(1)};
  if (made_for[0] != s.C || made_for[1] < HD || made_for[2] < GD)
    throw std::invalid_argument(
        fmt::format("scratch: wanted room for C = {}, H·D = {} and G·D = {}, got {}, {} and {}",
                    s.C, HD, GD, made_for[0], made_for[1], made_for[2]));
  if (!functions.attention)
    throw std::invalid_argument(
        "functions.attention: wanted one, such as a CachedAttention, got none");
  if (functions.network) return;
  if (s.F == 0 || s.experts > 0)
    throw std::invalid_argument(std::string("functions.network: wanted one, since ") +
                                (s.F == 0 ? "F is 0" : "the block has experts") + ", got none");
  const std::size_t gate = is_gated(s.activation) ? s.F : 0;
  if (scratch.feed_forward.up.shape(1) < s.F || scratch.feed_forward.gate.shape(1) < gate)
    throw std::invalid_argument(fmt::format(
        "scratch.feed_forward: wanted up [T, {}] and gate [T, {}], got [T, {}] and [T, {}]", s.F,
        gate, scratch.feed_forward.up.shape(1), scratch.feed_forward.gate.shape(1)));
}

/// The first T rows and the first columns of one matrix of the scratch, which may be larger.
static Matrix part_of(Tensor<2>& scratch, std::size_t T, std::size_t cols) {
  return Matrix(scratch).rows_from(0, T).cols_from(0, cols);
}

/// Each head's D channels go through a norm of their own, or all heads through one, in place.
static void norm_heads(Matrix x, const NormWeights& weights, const BlockSettings& s) {
  const std::size_t width = weights.gain.size();
  for (std::size_t i = 0; i < x.cols / width; ++i)
    norm_rows(x.head(i, width), weights, s.norm, s.eps, x.head(i, width));
}

/// Attention reads x and writes to `added` what is to be added to the stream.
static void attention_part(ConstMatrix x, Runs runs, const Block& block, const Attention& attention,
                           BlockScratch& scratch, const Trace& trace, Matrix added) {
  const BlockSettings& s = block.settings();
  const BlockWeights& weights = block.weights();
  const Matrix q = part_of(scratch.q, x.rows, s.H * s.D);          // [T, H·D]
  const Matrix k = part_of(scratch.k, x.rows, s.G * s.D);          // [T, G·D]
  const Matrix v = part_of(scratch.v, x.rows, s.G * s.D);          // [T, G·D]
  const Matrix heads = part_of(scratch.heads, x.rows, s.H * s.D);  // [T, H·D]

  matmul_bt_each(x, {{weights.w_q, q}, {weights.w_k, k}, {weights.w_v, v}});
  add_bias(weights.b_q, q), add_bias(weights.b_k, k), add_bias(weights.b_v, v);
  if (s.head_norms) {
    norm_heads(q, weights.q_norm, s);
    norm_heads(k, weights.k_norm, s);
  }
  tell(trace, Part::q, block.layer(), q);
  tell(trace, Part::k, block.layer(), k);
  tell(trace, Part::v, block.layer(), v);

  // Only in this step does a token depend on others.
  attention({block, runs, q, k, v}, heads, trace);
  tell(trace, Part::heads, block.layer(), heads);
  matmul_bt(heads, weights.w_o, added);
  add_bias(weights.b_o, added);
}

/// The network reads x and writes to `added`. It is chapter 07's unless the caller supplies one.
static void network_part(ConstMatrix x, const Block& block, const FeedForward& network,
                         FeedForwardScratch& scratch, const Trace& trace, Matrix added) {
  if (network) return network(block, x, added, trace);
  const Activation activation = block.settings().activation;
  const auto tell_both = [&](ConstMatrix gate, ConstMatrix up) {
    if (is_gated(activation)) tell(trace, Part::gate, block.layer(), gate);
    tell(trace, Part::up, block.layer(), up);
  };
  feed_forward_rows(x, block.weights().feed_forward, activation, scratch, added,
                    trace ? SeeGateAndUp(std::ref(tell_both)) : SeeGateAndUp());
  tell(trace, Part::hidden, block.layer(), part_of(scratch.up, x.rows, block.settings().F));
}

void block_rows(Matrix x, Runs runs, const Block& block, const BlockFunctions& functions,
                BlockScratch& scratch, const Trace& trace) {
  expect_call(x, block, functions, scratch);
  const BlockSettings& s = block.settings();
  const BlockWeights& weights = block.weights();
  const bool norm_before = s.norm_place != NormPlace::after;
  const Matrix normed = part_of(scratch.normed, x.rows, s.C);  // [T, C]
  const Matrix added = part_of(scratch.added, x.rows, s.C);    // [T, C]
  const auto normalize = [&](Part part, const NormWeights& gains, Matrix from, Matrix to) {
    norm_rows(from, gains, s.norm, s.eps, to);
    tell(trace, part, block.layer(), to);
  };
  const auto add = [&](Part part, Part post_norm, const NormWeights& gains, Part sum) {
    tell(trace, part, block.layer(), added);
    if (functions.before_sum) functions.before_sum(block, part, x, added);
    if (s.norm_place == NormPlace::both) normalize(post_norm, gains, added, added);
    add_rows(added, x);
    tell(trace, sum, block.layer(), x);
  };

  // Attention reads the stream, in pre-norm through a norm, and adds its result to the stream.
  if (norm_before) normalize(Part::attention_norm, weights.attention_norm, x, normed);
  attention_part(norm_before ? normed : x, runs, block, functions.attention, scratch, trace, added);
  add(Part::attention, Part::post_attention_norm, weights.post_attention_norm,
      Part::x_plus_attention);
  if (!norm_before) normalize(Part::attention_norm, weights.attention_norm, x, x);

  // The feed-forward network does the same, for each token alone.
  if (norm_before) normalize(Part::feed_forward_norm, weights.feed_forward_norm, x, normed);
  network_part(norm_before ? normed : x, block, functions.network, scratch.feed_forward, trace,
               added);
  add(Part::feed_forward, Part::post_feed_forward_norm, weights.post_feed_forward_norm,
      Part::x_plus_feed_forward);
  if (!norm_before) normalize(Part::feed_forward_norm, weights.feed_forward_norm, x, x);
}

}  // namespace t2t
