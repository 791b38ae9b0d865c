// What chapter 13's backward passes are compared with: central differences of a function that is
// computed in float64, and how far roundings may take a float from them.
#pragma once

#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include "files/npy.hpp"
#include "tensor.hpp"

namespace t2t {

/// A matrix in float64. A vector is one row.
struct Doubles {
  std::size_t rows, cols;
  std::vector<double> numbers;  // row-major

  Doubles(std::size_t rows, std::size_t cols) : rows(rows), cols(cols), numbers(rows * cols) {}
  explicit Doubles(const Tensor<2>& x)
      : rows(x.shape(0)), cols(x.shape(1)), numbers(x.begin(), x.end()) {}
  explicit Doubles(const Tensor<1>& x) : rows(1), cols(x.size()), numbers(x.begin(), x.end()) {}

  double& operator()(std::size_t t, std::size_t c) { return numbers[t * cols + c]; }
  double operator()(std::size_t t, std::size_t c) const { return numbers[t * cols + c]; }
};

/// Σ dy·y: the number whose gradient with respect to y is dy.
inline double dot(const Tensor<2>& dy, const Doubles& y) {
  double sum = 0;
  for (std::size_t i = 0; i < y.numbers.size(); ++i) sum += double(dy.data()[i]) * y.numbers[i];
  return sum;
}

/// The gradient of loss() with respect to each number of x, which loss reads: each is changed by h
/// either way. The difference is off by h²/6 times the third derivative, and by the roundings of
/// two doubles divided by h: with h = 1e-5 and numbers up to about 10 by less than 1e-9, a
/// hundredth of what a float can tell apart.
template <class Loss>
Tensor<2> by_differences(Doubles& x, Loss loss, double h = 1e-5) {
  Tensor<2> gradient = empty(x.rows, x.cols);
  for (std::size_t i = 0; i < x.numbers.size(); ++i) {
    const double at = x.numbers[i];
    x.numbers[i] = at + h;
    const double above = loss();
    x.numbers[i] = at - h;
    const double below = loss();
    x.numbers[i] = at;
    gradient.data()[i] = float((above - below) / (2 * h));
  }
  return gradient;
}

/// How far a sum of n floats may be off whose partial sums are at most `size`. Roundings, of at
/// most 2^-24 of that each, go up about as often as down, so those of n terms come to about √n/2 of
/// them. It allows for four times as much, and for eight more in the terms themselves.
inline double rounding(std::size_t n, double size) {
  return (2 * std::sqrt(double(n)) + 8) * 0x1p-24 * size;
}

/// What fixtures/13_training/make_backward.py wrote.
template <std::size_t N>
Tensor<N> reference(const std::string& name) {
  return load_npy<N>(std::string(T2T_FIXTURES) + "/backward_" + name + ".npy");
}

inline Tensor<2> zeros(std::size_t rows, std::size_t cols) {
  return xt::zeros<float>({rows, cols});
}
inline Tensor<1> zeros(std::size_t count) { return xt::zeros<float>({count}); }
/// A vector as a matrix of one row.
inline Tensor<2> as_matrix(const Tensor<1>& x) {
  return copy_of(ConstMatrix(x.data(), 1, x.size(), x.size()));
}
/// Some rows of a matrix as a matrix of their own.
inline Tensor<2> rows_of(ConstMatrix x, std::size_t from, std::size_t count) {
  return copy_of(x.rows_from(from, count));
}

}  // namespace t2t
