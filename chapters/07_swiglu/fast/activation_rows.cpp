#include "07_swiglu/fast/activation_rows.hpp"

#include "lanes.hpp"
#include "rows.hpp"
#include "shapes.hpp"

namespace t2t {

// The formulas for a register of floats (Lanes). These are objects and not functions, so that the
// compiler inlines them.

// [lanes]
static constexpr auto sigmoid_lanes = [](Lanes x) { return 1.0f / (1.0f + xsimd::exp(-x)); };
static constexpr auto relu_lanes = [](Lanes x) { return xsimd::select(x < 0.0f, Lanes(0), x); };
static constexpr auto gelu_lanes = [](Lanes x) {
  return 0.5f * x * (1.0f + xsimd::erf(x * inverse_root_2));
};
// (1 + tanh(u))/2 is σ(2u), so one exponential is enough.
static constexpr auto gelu_tanh_lanes = [](Lanes x) {
  const Lanes u = root_2_over_pi * (x + 0.044715f * x * x * x);
  return x / (1.0f + xsimd::exp(-2.0f * u));
};
static constexpr auto silu_lanes = [](Lanes x) { return x / (1.0f + xsimd::exp(-x)); };
// [/lanes]

/// Calls `use` with the activation's function, which is applied to x or to the gate.
template <class Use>
static void with_lanes(Activation activation, Use use) {
  switch (activation) {
    case Activation::glu:
      return use(sigmoid_lanes);
    case Activation::relu:
    case Activation::reglu:
      return use(relu_lanes);
    case Activation::gelu:
    case Activation::geglu:
      return use(gelu_lanes);
    case Activation::gelu_tanh:
    case Activation::geglu_tanh:
      return use(gelu_tanh_lanes);
    case Activation::silu:
    case Activation::swiglu:
      return use(silu_lanes);
  }
}

void activate_rows(Activation activation, ConstMatrix x, Matrix y) {
  expect_kind(activation, false);
  expect_shape("y", y, {x.rows, x.cols});
  with_lanes(activation, [&](auto f) {
    for_each_row(x.rows, x.cols, [&](std::size_t t) { map_row(y.row(t), f, x.row(t)); });
  });
}

void gated_rows(Activation activation, ConstMatrix gate, ConstMatrix up, Matrix y) {
  expect_kind(activation, true);
  expect_shape("up", up, {gate.rows, gate.cols});
  expect_shape("y", y, {gate.rows, gate.cols});
  with_lanes(activation, [&](auto f) {
    const auto gated = [&](Lanes open, Lanes up) { return f(open) * up; };
    for_each_row(gate.rows, gate.cols,
                 [&](std::size_t t) { map_row(y.row(t), gated, gate.row(t), up.row(t)); });
  });
}

}  // namespace t2t
