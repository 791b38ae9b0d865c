#include "25_sinks/shows/show_mxfp4.hpp"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "12_quantization/formats/quantize.hpp"
#include "12_quantization/formats/relative_error.hpp"
#include "25_sinks/mxfp4/mxfp4.hpp"
#include "program/print.hpp"
#include "random.hpp"

namespace t2t {

void show_fp4_values() {
  print_section("The 16 values of MXFP4");
  Table table({">code", ">bits", ">value", "", ">code", ">bits", ">value"});
  for (std::uint8_t code = 0; code < 8; ++code) {
    const std::uint8_t other = code | 8;
    table.add({fmt::format("{}", code), fmt::format("{:04b}", code),
               fmt::format("{:g}", fp4_value(code)), "", fmt::format("{}", other),
               fmt::format("{:04b}", other), fmt::format("{:g}", fp4_value(other))});
  }
  table.print();
  fmt::print("\n");
  print_paragraph(
      "A block's scale, a power of two, multiplies them. Between 2 and 6 neighbours are farther "
      "apart than near 0, as a float's are.");
}

/// x in MXFP4, and back.
static Tensor<2> through_mxfp4(const Tensor<2>& x) {
  Tensor<2> back = empty(x.shape(0), x.shape(1));
  unpack_mxfp4(pack_mxfp4(x), back);
  return back;
}

static Tensor<2> through(TensorType type, const Tensor<2>& x) {
  Tensor<2> back = empty(x.shape(0), x.shape(1));
  dequantize_rows(type, quantize_rows(type, x), back);
  return back;
}

void show_mxfp4_errors() {
  print_section("The error of weights in 4 bits: [64, 1024] from N(0, 1)");
  constexpr std::size_t rows = 64, cols = 1024;
  const Tensor<2> plain = Random(1).normal<2>({rows, cols});
  Table table({"format", ">bits per weight", ">no outlier", ">beside ×4", ">beside ×20"});
  const auto add = [&](const std::string& name, double bits, auto round) {
    std::vector<std::string> cells = {name, fmt::format("{:.2f}", bits)};
    for (const float factor : {1.0f, 4.0f, 20.0f}) {
      Tensor<2> x = plain;
      for (std::size_t t = 0; t < rows; ++t)
        for (std::size_t c = 0; c < cols; c += 32) x(t, c) *= factor;
      Tensor<2> back = round(x);
      for (std::size_t t = 0; factor > 1 && t < rows; ++t)
        for (std::size_t c = 0; c < cols; c += 32) x(t, c) = back(t, c) = 0;  // the others alone
      cells.push_back(fmt::format("{:.1f} %", 100 * relative_error(back, x)));
    }
    table.add(cells);
  };
  add("MXFP4", 8.0 * mxfp4_bytes / mxfp4_numbers, through_mxfp4);
  for (const TensorType type : {TensorType::q4_0, TensorType::q4_1}) {
    const BlockLayout block = block_layout(type);
    add(type_name(type), 8 * double(block.bytes) / double(block.numbers),
        [&](const Tensor<2>& x) { return through(type, x); });
  }
  table.print();
  fmt::print("\n");
  print_paragraph(
      "The root mean square of the differences, divided by that of the weights. In the last two "
      "columns one weight of each block is multiplied by 4 or 20, and the error is that of the "
      "others.");
}

}  // namespace t2t
