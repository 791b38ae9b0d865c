#include "07_swiglu/shows/curves.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <string>

#include "07_swiglu/fast/activation_rows.hpp"
#include "program/print.hpp"

namespace t2t {

Tensor<2> curve_points(float low, float high, std::size_t count) {
  Tensor<2> x = empty(1, count), points = empty(curves.size(), count);
  for (std::size_t i = 0; i < count; ++i)
    x(0, i) = low + (high - low) * float(i) / float(count - 1);
  for (std::size_t k = 0; k < curves.size(); ++k)
    activate_rows(curves[k].activation, x, Matrix(points).rows_from(k, 1));
  return points;
}

/// x runs from -4 to 2, y from 0.7 down to -0.3. Where curves meet, the first one's letter is
/// shown.
static void print_curves() {
  constexpr std::size_t columns = 61;                     // a tenth each
  const Tensor<2> points = curve_points(-4, 2, columns);  // [3, columns]
  for (int tenth = 7; tenth >= -3; --tenth) {
    std::string line;
    for (std::size_t i = 0; i < columns; ++i) {
      std::string cell = i == 40 ? "│" : tenth == 0 ? "─" : " ";
      for (std::size_t k = curves.size(); k-- > 0;)
        if (std::lround(points(k, i) * 10 + 1e-3f) == tenth)
          cell = use_colour() ? fmt::format("\033[{}m{}\033[0m", curves[k].colour, curves[k].letter)
                              : curves[k].letter;
      line += cell;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    fmt::print("  {:>4.1f} {}\n", tenth / 10.0, line);
  }
  fmt::print("       {:<39} 0 {:>18}\n", "-4", "2");
}

void show_curves() {
  print_section("The curves");
  print_curves();
  fmt::print("\n");
  Table table({">x", ">R: relu", ">G: gelu", ">gelu_tanh", ">S: silu"});
  for (const float at : {-3.0f, -1.0f, 0.0f, 1.0f, 3.0f}) {
    const Tensor<2> x = {{at}};
    std::vector<std::string> cells = {fmt::format("{:.1f}", at)};
    for (const Activation activation :
         {Activation::relu, Activation::gelu, Activation::gelu_tanh, Activation::silu})
      cells.push_back(fmt::format("{:.4f}", activate(activation, x)(0, 0)));
    table.add(cells);
  }
  table.print();
  fmt::print("\n");
  print_paragraph(
      "Far to the left all go to 0, far to the right to x. GELU and SiLU dip below 0 on the left. "
      "Their derivative there is 0 only at the bottom of the dip, so a gradient still reaches a "
      "unit whose input is a little below 0.");
}

void show_gates() {
  print_section("One hidden channel: up is 2, the gate goes from -3 to 3");
  Table table({">gate", ">sigmoid", ">glu", ">reglu", ">geglu", ">swiglu"});
  for (const float at : {-3.0f, -1.0f, 0.0f, 1.0f, 3.0f}) {
    const Tensor<2> gate = {{at}}, up = {{2}};
    std::vector<std::string> cells = {fmt::format("{:.0f}", at),
                                      fmt::format("{:.3f}", sigmoid(gate)(0, 0))};
    for (const Activation use :
         {Activation::glu, Activation::reglu, Activation::geglu, Activation::swiglu})
      cells.push_back(fmt::format("{:.3f}", gated(use, gate, up)(0, 0)));
    table.add(cells);
  }
  table.print();
}

}  // namespace t2t
