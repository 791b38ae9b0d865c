// Two backward passes, RMSNorm's and softmax's, each for one row, in doubles, and compared with
// finite differences. norm_backward.cpp and attention_backward.cpp compute the same for many rows.
// [whole]
// g++ -std=c++20 chapters/13_training/backward/by_hand.cpp && ./a.out
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <vector>

using Vector = std::vector<double>;

double dot(const Vector& a, const Vector& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

/// r = 1/√(m + eps)
double inverse_rms(const Vector& x, double eps) {
  return 1 / std::sqrt(dot(x, x) / double(x.size()) + eps);
}

Vector rms_norm(Vector x, const Vector& gain, double eps) {
  const double r = inverse_rms(x, eps);
  for (std::size_t c = 0; c < x.size(); ++c) x[c] *= gain[c] * r;
  return x;
}

Vector rms_norm_backward(const Vector& x, const Vector& gain, double eps, const Vector& dy) {
  const double r = inverse_rms(x, eps);
  Vector normed = x, u = dy, dx = x;
  for (std::size_t c = 0; c < x.size(); ++c) normed[c] *= r, u[c] *= gain[c];
  const double projection = dot(u, normed) / double(x.size());
  for (std::size_t c = 0; c < x.size(); ++c) dx[c] = r * (u[c] - normed[c] * projection);
  return dx;
}

Vector softmax(Vector scores) {
  const double highest = *std::ranges::max_element(scores);
  for (double& score : scores) score = std::exp(score - highest);
  const double sum = std::accumulate(scores.begin(), scores.end(), 0.0);
  for (double& score : scores) score /= sum;
  return scores;
}

Vector softmax_backward(const Vector& weights, const Vector& dweights) {
  const double delta = dot(weights, dweights);
  Vector dscores = weights;
  for (std::size_t s = 0; s < weights.size(); ++s) dscores[s] *= dweights[s] - delta;
  return dscores;
}

/// The finite difference of loss when x[i] moves by h to either side.
template <class Loss>
double finite_difference(Loss loss, Vector x, std::size_t i) {
  const double at = x[i], h = 1e-5;
  x[i] = at + h;
  const double above = loss(x);
  x[i] = at - h;
  return (above - loss(x)) / (2 * h);
}

/// Prints a gradient beside the finite differences, and returns the sum of the differences.
template <class Loss>
double compare(const char* name, const Vector& gradient, Loss loss, const Vector& x) {
  double off = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double difference = finite_difference(loss, x, i);
    std::printf("  %7s[%zu]  %9.6f  %9.6f\n", name, i, gradient[i], difference);
    off += std::abs(gradient[i] - difference);
  }
  return off;
}

int main() {
  const Vector x = {1, 7}, gain = {0.5, 2}, dy = {2, 0};
  const Vector scores = {0, std::log(3)}, dweights = {2, 6};
  const auto of_norm = [&](const Vector& x) { return dot(dy, rms_norm(x, gain, 0)); };
  const auto of_softmax = [&](const Vector& scores) { return dot(dweights, softmax(scores)); };

  std::printf("One row's gradients, by formula and by finite differences\n\n");
  double off = compare("dx", rms_norm_backward(x, gain, 0, dy), of_norm, x);
  off += compare("dscores", softmax_backward(softmax(scores), dweights), of_softmax, scores);
  std::printf("\n  The differences add up to %.9f.\n", off);
  return off < 1e-8 ? 0 : 1;
}
// [/whole]
