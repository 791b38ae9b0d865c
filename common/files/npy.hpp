// NumPy's .npy files (format version 1.0). Tests read fixtures from them, and --save writes them
// for numpy.load in Python.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "shapes.hpp"
#include "tensor.hpp"

namespace t2t {

/// Writes float32. The file appears complete or not at all. Throws std::runtime_error, naming the
/// file, when it can't be written.
void save_npy(const std::filesystem::path& path, std::span<const float> values,
              std::span<const std::size_t> shape);
/// Writes int32.
void save_npy(const std::filesystem::path& path, std::span<const int> values);

template <std::size_t N>
void save_npy(const std::filesystem::path& path, const Tensor<N>& x) {
  save_npy(path, {x.data(), x.size()}, {x.shape().data(), N});
}

/// What a file holds, with any number of dimensions.
template <class Value>
struct NpyContent {
  std::vector<std::size_t> shape;
  std::vector<Value> values;  // row-major
};

/// Reads a file of little-endian float32, or int32, in row-major order. Throws std::runtime_error,
/// naming the file and what is wrong, for any other file.
NpyContent<float> load_npy_floats(const std::filesystem::path& path);
std::vector<int> load_npy_ints(const std::filesystem::path& path);

/// Reads float32 with N dimensions. Throws as load_npy_floats, and for another number of
/// dimensions.
template <std::size_t N>
Tensor<N> load_npy(const std::filesystem::path& path) {
  const NpyContent<float> content = load_npy_floats(path);
  if (content.shape.size() != N)
    throw std::runtime_error(path.string() + ": holds shape " + shape_text(content.shape) +
                             ", wanted " + std::to_string(N) + " dimensions");
  std::array<std::size_t, N> shape{};
  std::copy(content.shape.begin(), content.shape.end(), shape.begin());
  Tensor<N> x = Tensor<N>::from_shape(shape);
  std::copy(content.values.begin(), content.values.end(), x.begin());
  return x;
}

}  // namespace t2t
