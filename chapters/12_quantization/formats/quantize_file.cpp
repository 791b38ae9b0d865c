#include "12_quantization/formats/quantize_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

#include "10_pretrained/tokenizer/utf8.hpp"
#include "12_quantization/formats/file_plan.hpp"
#include "12_quantization/formats/relative_error.hpp"
#include "files/files.hpp"

namespace t2t {

static std::string_view as_text(std::span<const std::uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Rounds a matrix and writes it, some rows at a time, so that few floats are in memory at once.
static void write_rounded(const PlannedTensor& planned, const RoundRows& round,
                          const WriteBytes& write, SquaredErrors& squares) {
  const GgufTensor& from = *planned.from;
  const std::size_t cols = from.shape.back(), rows = numbers_of(from) / cols;
  const std::size_t at_once = std::max<std::size_t>(1, (1 << 22) / cols);
  for (std::size_t first = 0; first < rows; first += at_once) {
    const std::size_t count = std::min(at_once, rows - first);
    const std::size_t row_bytes = from.size / rows;
    Tensor<2> x = empty(count, cols), back = empty(count, cols);
    dequantize_rows(from.type, from.bytes.subspan(first * row_bytes, count * row_bytes), x);
    const std::vector<std::uint8_t> bytes = round(planned.type, x, from.name);
    dequantize_rows(planned.type, bytes, back);
    squares.add(back, x);
    write(as_text(bytes));
  }
  if (!std::isfinite(squares.errors))
    throw std::invalid_argument(
        fmt::format("wanted weights that {} can hold, got larger ones", type_name(planned.type)));
}

QuantizedFile quantize_file(const GgufFile& in, TensorType type, const std::filesystem::path& out,
                            const RoundRows& round,
                            const std::function<void(std::size_t done)>& after_tensor) {
  const std::vector<PlannedTensor> plan = plan_tensors(in, type);
  const std::vector<std::uint8_t> head = file_head(in, plan, type);
  const std::uint64_t alignment = alignment_of(in);
  QuantizedFile result{head.size(), 0, 0, 0};
  SquaredErrors squares;
  write_file(out, [&](const WriteBytes& write) {
    write(as_text(head));
    for (std::size_t i = 0; i < plan.size(); ++i) {
      const PlannedTensor& planned = plan[i];
      // Each tensor ends with zeros up to the place of the next one.
      const std::uint64_t rest = (alignment - planned.size % alignment) % alignment;
      try {
        if (planned.is_matrix && planned.type != planned.from->type)
          write_rounded(planned, round, write, squares);
        else
          write(as_text(planned.from->bytes));
      } catch (const std::invalid_argument& error) {
        throw std::runtime_error(
            fmt::format("{}: {}: {}", in.name(), printable(planned.from->name), error.what()));
      } catch (const std::runtime_error&) {
        in.expect_whole();  // bytes that are gone can't be written either
        throw;
      }
      write(std::string(rest, '\0'));
      result.bytes += planned.size + rest;
      if (planned.is_matrix)
        result.weights += numbers_of(*planned.from), result.weight_bytes += planned.size;
      if (after_tensor) after_tensor(i + 1);
    }
    in.expect_whole();
  });
  result.error = squares.numbers > 0 ? squares.relative() : 0;
  return result;
}

}  // namespace t2t
