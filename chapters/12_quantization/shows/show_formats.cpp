#include "12_quantization/shows/show_formats.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "12_quantization/formats/quantize.hpp"
#include "12_quantization/formats/relative_error.hpp"
#include "12_quantization/packed/packed_rows.hpp"
#include "program/print.hpp"
#include "random.hpp"

namespace t2t {

/// x after rounding to a type and back.
static Tensor<2> rounded(TensorType type, ConstMatrix x) {
  Tensor<2> back = empty(x.rows, x.cols);
  dequantize_rows(type, quantize_rows(type, x), back);
  return back;
}

void show_block() {
  print_section("Eight weights of a block of 32, rounded and back");
  Tensor<2> x = empty(1, 32);
  for (std::size_t i = 0; i < 32; ++i) x(0, i) = -1 + 0.06f * float(i * 7 % 32);
  std::vector<Tensor<2>> back;
  Table table({">weight", ">Q8_0", ">Q4_1", ">Q4_0"});
  for (const TensorType type : shown_types) back.push_back(rounded(type, x));
  for (std::size_t i = 0; i < 8; ++i) {
    std::vector<std::string> cells = {fmt::format("{:.2f}", x(0, i))};
    for (const Tensor<2>& of_type : back) cells.push_back(fmt::format("{:.3f}", of_type(0, i)));
    table.add(cells);
  }
  table.print();
  fmt::print("\n");
  print_paragraph(
      "The block's weights lie between -1 and 0.86. Q8_0 has steps of 1/127. Q4_1 has 16 values "
      "from the lowest to the highest, in steps of 1.86/15 = 0.124; none of them is 0, and the "
      "nearest is -0.008. Q4_0 has 16 values from -1 to 7/8, in steps of 1/8, and 0 is one of "
      "them.");
}

/// 4 bits without blocks: q in −8 … 7, and one scale for a whole row.
static Tensor<2> rounded_by_row(ConstMatrix x) {
  Tensor<2> back = copy_of(x);
  for (std::size_t t = 0; t < x.rows; ++t) {
    float highest = 0;
    for (const float value : x.row(t)) highest = std::max(highest, std::abs(value));
    for (float& value : row(back, t))
      value = std::clamp(std::round(value / highest * 8), -8.0f, 7.0f) * highest / 8;
  }
  return back;
}

void show_errors() {
  print_section("The error of weights by format: [64, 1024] from N(0, 1)");
  Random random(1);
  const Tensor<2> plain = random.normal<2>({64, 1024});
  Tensor<2> outliers = plain;
  for (std::size_t t = 0; t < 64; ++t) outliers(t, 16 * t) *= 20;  // 1 number of each row
  Table table({"format", ">bits per weight", ">no outlier", ">one in each row",
               ">the row's other weights"});
  const auto add = [&](const std::string& name, const std::string& bits, auto round) {
    const auto error = [&](const Tensor<2>& x) { return relative_error(round(x), x); };
    Tensor<2> others = round(outliers), want = outliers;
    for (std::size_t t = 0; t < 64; ++t) others(t, 16 * t) = want(t, 16 * t) = 0;
    table.add({name, bits, fmt::format("{:.2f} %", 100 * error(plain)),
               fmt::format("{:.2f} %", 100 * error(outliers)),
               fmt::format("{:.2f} %", 100 * relative_error(others, want))});
  };
  for (const TensorType type :
       {TensorType::q8_0, TensorType::q6_k, TensorType::q4_1, TensorType::q4_k, TensorType::q4_0}) {
    const BlockLayout block = block_layout(type);
    add(type_name(type), fmt::format("{:.1f}", 8 * double(block.bytes) / double(block.numbers)),
        [&](const Tensor<2>& x) { return rounded(type, x); });
  }
  add("4 bits, one scale per row", "4.0", [](const Tensor<2>& x) { return rounded_by_row(x); });
  table.print();
  fmt::print("\n");
  print_paragraph(
      "The error is the root mean square of the differences, divided by that of the weights. An "
      "outlier is a weight multiplied by 20. The K formats also round the block's scales, and more "
      "coarsely when one scale is large.");
}

void show_outlier() {
  print_section("One row with an outlier: the error of each 32 weights");
  const std::size_t blocks = 24, outlier = 32 * 13 + 5;
  Tensor<2> x = Random(3).normal<2>({1, 32 * blocks});
  x(0, outlier) = 20;
  std::vector<std::string> labels;
  Tensor<2> errors = empty(5, blocks);
  const auto add = [&](const std::string& name, Tensor<2> back) {
    back(0, outlier) = x(0, outlier);  // the others' errors alone
    for (std::size_t b = 0; b < blocks; ++b) {
      double squares = 0;
      for (std::size_t c = 32 * b; c < 32 * (b + 1); ++c)
        squares += std::pow(double(back(0, c)) - x(0, c), 2);
      errors(labels.size(), b) = float(std::sqrt(squares / 32));
    }
    labels.push_back(name);
  };
  for (const TensorType type :
       {TensorType::q8_0, TensorType::q4_1, TensorType::q4_k, TensorType::q4_0})
    add(type_name(type), rounded(type, x));
  add("one scale per row", rounded_by_row(x));
  print_heat_map(errors, {.row_labels = labels});
  fmt::print("\n");
  print_paragraph(
      "The marks show the root mean square of a block's errors. The row has 768 weights from "
      "N(0, 1), except for the outlier, 20, in the 14th block, whose own error is not counted. The "
      "last line also has 4 bits, but one scale for all 768 weights.");
}

}  // namespace t2t
