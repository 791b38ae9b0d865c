// Writes a model's file again, with its matrices rounded to another type, as file_plan.hpp says.
//
// The matrices are read, rounded and written some rows at a time, so that a model of any size needs
// little memory. One that has the type already is copied: rounding it again could only lose more.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string_view>
#include <vector>

#include "10_pretrained/file/gguf.hpp"

namespace t2t {

/// Rounds rows of the matrix of this name: as quantize_rows, or with a search.
using RoundRows =
    std::function<std::vector<std::uint8_t>(TensorType type, ConstMatrix x, std::string_view name)>;

/// What was written.
struct QuantizedFile {
  std::uint64_t bytes;                  // the whole file
  std::uint64_t weights, weight_bytes;  // of all matrices
  double error;                         // root mean square, as a share of the weights' own
};
/// Writes the file, which appears whole or not at all; after_tensor, if given, is called after
/// each tensor. Throws std::runtime_error, naming the file, when it can't be written, when `in`
/// has become shorter, or when a matrix has weights that are not finite or too large for the type.
QuantizedFile quantize_file(const GgufFile& in, TensorType type, const std::filesystem::path& out,
                            const RoundRows& round,
                            const std::function<void(std::size_t done)>& after_tensor = {});

}  // namespace t2t
