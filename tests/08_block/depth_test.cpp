// What must be true of the stacks that chapter 08 measures: sizes and gradients that one can work
// out by hand, and that a change sent up is as large as a gradient sent down.
#include "08_block/depth/depth.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "02_normalization/rms_norm.hpp"
#include "08_block/block.hpp"
#include "linalg.hpp"
#include "support/refuses.hpp"

namespace t2t::depth_test {

static BlockSettings relu_settings(std::size_t C, std::size_t H, std::size_t F) {
  BlockSettings settings = llama_style(C, H, H, F);
  settings.activation = Activation::relu, settings.uses_rope = false, settings.eps = 1e-12f;
  return settings;
}

/// Of one token: each part gives `share` of what it reads. relu(x) − relu(−x) is x.
static BlockWeights shares(float share) {
  BlockWeights weights;
  weights.attention_norm.gain = weights.feed_forward_norm.gain = {1, 1};
  const Weight one(Tensor<2>{{1, 0}, {0, 1}});
  weights.w_q = weights.w_k = weights.w_v = one;
  weights.w_o = Tensor<2>{{share, 0}, {0, share}};
  weights.feed_forward.w_up = Tensor<2>{{1, 0}, {0, 1}, {-1, 0}, {0, -1}};
  weights.feed_forward.w_down = Tensor<2>{{share, 0, -share, 0}, {0, share, 0, -share}};
  return weights;
}

static StackMeasures top(StackVariant variant, float share, std::vector<Tensor<2>> changes) {
  const std::vector<BlockWeights> layers(3, shares(share));
  return measure_stack(variant, Tensor<2>{{3, 4}}, relu_settings(2, 1, 4), layers, changes).back();
}

// A step is a hundredth of x, so that a difference keeps u/0.01 = 6e-6 of its size for each of some
// ten roundings in seven functions; the step's own square adds less. 1e-3 leaves room for both.
static constexpr double near = 1e-3;

static bool about(double got, double want) { return std::abs(got - want) <= near * want; }

TEST_CASE("by hand: without norms each layer brings a gradient to a quarter, or with sums to 9/4") {
  const std::vector<Tensor<2>> changes = {{{1, -2}}, {{5, 1}}};
  CHECK(about(top(StackVariant::neither, 0.5f, changes).gradient, std::pow(0.25, 3)));
  CHECK(about(top(StackVariant::neither, 0.5f, changes).size, std::sqrt(12.5) * std::pow(0.25, 3)));
  CHECK(top(StackVariant::neither, 0.5f, changes).direct_gradient == 0);
  CHECK(top(StackVariant::neither, 0, changes).gradient == 0);  // also where the input itself is 0
  CHECK(about(top(StackVariant::residuals_only, 0.5f, changes).gradient, std::pow(2.25, 3)));
  CHECK(top(StackVariant::residuals_only, 0.5f, changes).direct_gradient == 1);
}

TEST_CASE("by hand: three tokens and their spread around the mean token") {
  // The mean is (2, 2). The squares around it sum to 10, and those of the tokens to 34.
  const Tensor<2> input = {{3, 4}, {1, 2}, {2, 0}};
  const std::vector<BlockWeights> layers(1, shares(0));
  const std::vector<StackMeasures> after =
      measure_stack(StackVariant::residuals_only, input, relu_settings(2, 1, 4), layers, {input});
  for (const StackMeasures& depth : after) {
    CHECK(about(depth.size, std::sqrt(34.0 / 6)));
    CHECK(about(depth.spread, std::sqrt(10.0 / 34)));
  }
}

TEST_CASE("by hand: a norm divides changes across x by x's size and removes changes along x") {
  const Tensor<2> along = {{3, 4}}, across = {{4, -3}};
  const double inverse = 1 / std::sqrt(12.5);  // (3, 4) has root mean square √12.5
  for (const StackVariant variant : {StackVariant::pre_norm, StackVariant::post_norm}) {
    const StackMeasures nothing_added = top(variant, 0, {across});
    CHECK(about(nothing_added.gradient, inverse));
    CHECK(about(nothing_added.direct_gradient, inverse));
    CHECK(about(top(variant, 0, {across, along}).gradient, inverse / std::sqrt(2)));
  }
  // Each part reads (3, 4) brought to size 1 and gives half of it: what one halves, the next norm
  // doubles.
  CHECK(about(top(StackVariant::norms_only, 0.5f, {across}).gradient, inverse));
  CHECK(top(StackVariant::norms_only, 0.5f, {across}).direct_gradient == 0);
}

TEST_CASE(
    "gradients sent down through the transposed derivative have the size of changes sent up") {
  const std::size_t T = 2, C = 4, n = T * C;
  const BlockSettings settings = relu_settings(C, 2, 8);
  Random random(3);
  std::vector<BlockWeights> layers;
  for (int l = 0; l < 2; ++l) layers.push_back(draw_block(settings, random));
  const Tensor<2> input = random.normal<2>({T, C});
  const Tensor<1> ones = xt::ones<float>({C});
  const auto stack = [&](Tensor<2> x) {
    for (const BlockWeights& weights : layers) x = block(x, weights, settings, {});
    return rms_norm(x, ones, settings.eps);
  };

  // J, a column a number of the input, by differences. [n, n]
  std::vector<Tensor<2>> each(n, xt::zeros<float>({T, C}));
  Tensor<2> J = empty(n, n);
  for (std::size_t i = 0; i < n; ++i) {
    each[i].data()[i] = 1;
    const Tensor<2> column =
        (stack(input + 0.01f * each[i]) - stack(input - 0.01f * each[i])) / 0.02f;  // [T, C]
    for (std::size_t j = 0; j < n; ++j) J(j, i) = column.data()[j];
  }
  const std::size_t many = 4000;  // the mean of their squares is within √(2/4000) = 2 %, five times
  const Tensor<2> gradients = random.normal<2>({many, n});
  const Tensor<2> arrived = matmul(gradients, J);  // [many, n]
  double squares = 0;
  for (const float value : arrived) squares += double(value) * value / double(many * n);
  const double up =
      measure_stack(StackVariant::pre_norm, input, settings, layers, each).back().gradient;
  CHECK(std::abs(up * up / squares - 1) < 0.12);

  REFUSES(measure_stack(StackVariant::pre_norm, input, settings, layers, {}),
          "changes: wanted at least 1, got 0");
}

}  // namespace t2t::depth_test
