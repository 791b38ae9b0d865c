#include "07_swiglu/shows/product_network.hpp"

#include <fmt/format.h>

#include "07_swiglu/feed_forward.hpp"
#include "program/print.hpp"

namespace t2t {

/// The exact one, with F = 2.
static Tensor<2> product_by_gates(const Tensor<2>& x) {
  const Tensor<2> w_gate = {{1, 0}, {-1, 0}};  // [F, C]: a and −a
  const Tensor<2> w_up = {{0, 1}, {0, 1}};     // [F, C]: b and b
  const Tensor<2> w_down = {{1, -1}, {0, 0}};  // [C, F]
  return gated_network(x, w_gate, w_up, w_down, Activation::swiglu);
}

/// The approximate one, with F = 2·pieces, for ReLU. With s = a ± b, each unit relu(s − knot)
/// changes the slope at its knot; the first has the slope of s² over its piece. The value of s² at
/// −4 cancels between the squares.
static Tensor<2> product_by_bends(const Tensor<2>& x, std::size_t pieces) {
  const std::size_t F = 2 * pieces;
  const float width = 8 / float(pieces);
  Tensor<2> w_up = empty(F, 2), w_down = xt::zeros<float>({std::size_t(2), F});
  Tensor<1> b_up = empty(F);
  for (std::size_t f = 0; f < F; ++f) {
    const float sign = f < pieces ? 1 : -1, knot = -4 + width * float(f % pieces);
    w_up(f, 0) = 1, w_up(f, 1) = sign;
    b_up(f) = -knot;
    w_down(0, f) = sign / 4 * (f % pieces == 0 ? 2 * knot + width : 2 * width);
  }
  return plain_network(x, w_up, b_up, w_down, {}, Activation::relu);
}

void show_product() {
  print_section("The product of two channels");
  const Tensor<2> x = {{0.5f, 0.5f}, {1.3f, 0.6f}, {-1.7f, 0.9f}, {10, 10}};  // [4, 2]: a, b
  const Tensor<2> by_gates = product_by_gates(x);
  const Tensor<2> by_8 = product_by_bends(x, 4);
  const Tensor<2> by_32 = product_by_bends(x, 16);
  Table table({">a", ">b", ">a·b", ">SwiGLU, F = 2", ">plain ReLU, F = 8", ">F = 32"});
  for (std::size_t t = 0; t < 4; ++t) {
    const float a = x(t, 0), b = x(t, 1);
    std::vector<std::string> cells = {fmt::format("{:.1f}", a), fmt::format("{:.1f}", b)};
    for (const float product : {a * b, by_gates(t, 0), by_8(t, 0), by_32(t, 0)})
      cells.push_back(fmt::format("{:.3f}", product));
    table.add(cells);
  }
  table.print();
  fmt::print("\n");
  print_paragraph(
      "silu(a)·b - silu(-a)·b is a·b, so two gated units compute the product on any range. The "
      "plain ReLU network follows the curve with straight pieces from -4 to 4, and goes straight "
      "on beyond them.");
}

}  // namespace t2t
