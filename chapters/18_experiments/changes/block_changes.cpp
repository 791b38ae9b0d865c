#include "18_experiments/changes/block_changes.hpp"

#include <algorithm>
#include <span>
#include <stdexcept>
#include <type_traits>

#include "rows.hpp"
#include "shapes.hpp"

namespace t2t {

static void expect_sizes(const Tensor<1>& slopes, const BlockSettings& s, ConstMatrix q,
                         ConstMatrix k) {
  expect_shape("q", q, {q.rows, s.H * s.D});
  expect_shape("k", k, {q.rows, s.G * s.D});
  expect_shape("slopes", slopes, {s.H});
}

/// Calls f(number, t, head) for the last channel of each head.
template <class F>
static void for_each_last_channel(Matrix x, std::size_t D, F f) {
  for (std::size_t t = 0; t < x.rows; ++t)
    for (std::size_t h = 0; h < x.cols / D; ++h) f(x.row(t)[(h + 1) * D - 1], t, h);
}

static void add_alibi(const Tensor<1>& slopes, const BlockSettings& s, Matrix q, Matrix k) {
  expect_sizes(slopes, s, q, k);
  const float factor = rule_of(s).factor_for(s.D);  // of q·k, 1/√D
  for_each_last_channel(
      q, s.D, [&](float& number, std::size_t, std::size_t h) { number = slopes(h) / factor; });
  for_each_last_channel(k, s.D,
                        [&](float& number, std::size_t t, std::size_t) { number = float(t); });
}

static void add_alibi_backward(const Tensor<1>& slopes, const BlockSettings& s, Matrix dq,
                               Matrix dk) {
  expect_sizes(slopes, s, dq, dk);
  // The projection to the last channel was not read.
  const auto clear = [](float& number, std::size_t, std::size_t) { number = 0; };
  for_each_last_channel(dq, s.D, clear);
  for_each_last_channel(dk, s.D, clear);
}

static void subtract_rows(ConstMatrix x, Matrix from) {
  for_each_row(x.rows, x.cols, [&](std::size_t t) {
    for (std::size_t c = 0; c < x.cols; ++c) from.row(t)[c] -= x.row(t)[c];
  });
}

TrainingFunctions functions_of(const BlockChanges& changes) {
  TrainingFunctions functions;
  functions.attention.mask = [causal = changes.causal](const BlockSettings& s) -> Mask {
    return {causal, s.window};
  };
  functions.attention.drops_weights = changes.drops_weights;
  if (changes.slopes.size() > 0) {
    functions.attention.forward = [changes](const BlockSettings& s, Matrix q, Matrix k) {
      add_alibi(changes.slopes, s, q, k);
    };
    functions.attention.backward = [changes](const BlockSettings& s, Matrix dq, Matrix dk) {
      add_alibi_backward(changes.slopes, s, dq, dk);
    };
  }
  if (!changes.residuals) {
    // x + (added − x) is what was added, without x, which gets no gradient through it.
    functions.sum.forward = [](const Block&, Part, ConstMatrix x, Matrix added) {
      subtract_rows(x, added);
    };
    functions.sum.backward = [](const Block&, Part, Matrix, Matrix dx) {
      std::ranges::fill(std::span(dx.data, dx.rows * dx.cols), 0.0f);
    };
  }
  return functions;
}

void take_norms_away(Config& config, ModelWeights& weights) {
  if (config.block.norm != Norm::rms || !config.layers.empty())
    throw std::invalid_argument("norms to take away: wanted RMSNorms, alike in all layers");
  config.block.eps = 0x1p60f;
  for_each_tensor(weights, config, []<class Stored>(const TensorInfo& info, Stored& tensor) {
    if constexpr (!std::is_same_v<Stored, Weight>)
      if (info.role == Role::gain) tensor.fill(0x1p30f);  // √eps
  });
}

}  // namespace t2t
