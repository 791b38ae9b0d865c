// A mixture for the kernels of chapter 14, what they leave in memory, and how far from the
// formula's numbers theirs may be.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "14_mixture_of_experts/experts.hpp"
#include "14_mixture_of_experts/kernels/kernels.hpp"
#include "cuda/device.hpp"
#include "support/hashed_numbers.hpp"
#include "support/kernels/device_numbers.hpp"

namespace t2t {

struct ExpertSizes {
  int T, E, k, C, F;
};

/// A mixture, its tokens, and what the router says of them.
struct Problem {
  ExpertSizes n;
  Weight router;
  std::vector<FeedForwardWeights> experts;
  Tensor<2> x;  // [T, C]
  RouterSettings settings;
  Routed routed;
  Assignment assignment;

  Mixture view() const { return {router, experts, Activation::swiglu, settings}; }
  void route_anew() {
    routed = route(x, router.floats(), settings);
    assign(routed.experts, std::size_t(n.E), assignment);
  }
};
inline Problem problem(const ExpertSizes& n) {
  Problem made{n, {}, {}, {}, {.k = std::size_t(n.k)}, {}, {}};
  const auto T = std::size_t(n.T), E = std::size_t(n.E), C = std::size_t(n.C), F = std::size_t(n.F);
  made.x = rounded(numbers(1, 4, 0, T, C));
  made.router = numbers(2, 1, 0, E, C);
  for (std::uint32_t e = 0; e < E; ++e) {
    FeedForwardWeights weights;
    weights.w_gate = rounded(numbers(10 * e + 3, 1, 0, F, C));
    weights.w_up = rounded(numbers(10 * e + 4, 1, 0, F, C));
    weights.w_down = rounded(numbers(10 * e + 5, 1, 0, C, F));
    made.experts.push_back(weights);
  }
  made.route_anew();
  return made;
}

inline void append(const Tensor<2>& from, std::vector<bf16>& to) {
  for (const float number : from) to.push_back(__float2bfloat16(number));
}
inline std::vector<int> ints(const std::vector<std::size_t>& from) {
  return {from.begin(), from.end()};
}

/// The experts' products, by one of the kernels.
struct ExpertForm {
  const char* name;
  decltype(&launch_expert_hidden) hidden;
  decltype(&launch_expert_results) results;
};
inline const ExpertForm by_warps{"mma.sync", launch_expert_hidden, launch_expert_results};
inline const ExpertForm by_warpgroups{"wgmma", launch_expert_hidden_warpgroups,
                                      launch_expert_results_warpgroups};
/// Those that this GPU can run.
inline std::vector<ExpertForm> forms() {
  if (compute_capability() != 90) return {by_warps};
  return {by_warps, by_warpgroups};
}

/// What the kernels leave in memory.
struct Ran {
  std::vector<float> hidden;   // [T·k, F], by expert
  std::vector<float> past;     // [128, F]: what is behind hidden, where nothing may be written
  std::vector<float> results;  // [T·k, C], by choice
  std::vector<float> y;        // [T, C]
  std::string fault;  // what the stand-in reports, for which a GPU may hang or compute anything
};
inline Ran run(const Problem& p, const ExpertForm& form, const std::vector<int>& starts) {
  const auto [T, E, k, C, F] = p.n;
  const std::size_t rows = std::size_t(T) * std::size_t(k), spare = 128;  // a tile
  std::vector<bf16> x, gate, up, down;
  append(p.x, x);
  for (const FeedForwardWeights& expert : p.experts) {
    append(expert.w_gate.floats(), gate), append(expert.w_up.floats(), up);
    append(expert.w_down.floats(), down);
  }
  std::vector<int> choices = ints(p.assignment.choices);
  choices.resize(rows + spare);
  const DeviceBuffer<bf16> on_x = on_device(x), on_gate = on_device(gate), on_up = on_device(up);
  const DeviceBuffer<bf16> on_down = on_device(down);
  const DeviceBuffer<float> weights{std::span(p.routed.weights.data(), rows)};
  const DeviceBuffer<int> begin = on_device(starts), on_choices = on_device(choices);
  DeviceBuffer<bf16> hidden((rows + spare) * std::size_t(F));
  DeviceBuffer<float> results(rows * std::size_t(C)), y(std::size_t(T) * std::size_t(C));
  const ExpertRows whose{T, k, E, begin.data(), on_choices.data()};
  std::string fault;
  try {
    form.hidden(whose, on_x.data(), on_gate.data(), on_up.data(), C, F, hidden.data());
    form.results(whose, weights.data(), hidden.data(), on_down.data(), C, F, results.data());
    launch_combine(results.data(), T, k, C, y.data());
  } catch (const std::runtime_error& reported) {
    fault = reported.what();
  }
  Ran ran{{}, {}, results.download(), y.download(), fault};
  for (const bf16 number : hidden.download())
    (ran.hidden.size() < rows * std::size_t(F) ? ran.hidden : ran.past)
        .push_back(__bfloat162float(number));
  return ran;
}
inline Ran run(const Problem& p, const ExpertForm& form) {
  return run(p, form, ints(p.assignment.begin));
}

/// The hidden numbers of one choice in float64, and how far from them a kernel's may be.
struct HiddenRow {
  std::vector<double> h, bound;
};

/// With u for u_float, a sum of C products is off by at most 2·C·u times the sum of their sizes: a
/// float addition by u, and one of the tensor cores, which cut digits off, by 2u. silu's slope is
/// at most 1.1, and silu and its product take fewer than 8 roundings. All this twice, once for the
/// kernel and once for the formula; the rounding to bf16 only once. 1.01 is for products of errors.
inline HiddenRow hidden_row(const Problem& p, std::size_t expert, std::size_t t) {
  const Tensor<2>& w_gate = p.experts[expert].w_gate.floats();
  const Tensor<2>& w_up = p.experts[expert].w_up.floats();
  const auto C = std::size_t(p.n.C);
  HiddenRow row;
  for (std::size_t f = 0; f < std::size_t(p.n.F); ++f) {
    double gate = 0, up = 0, gates = 0, ups = 0;
    for (std::size_t c = 0; c < C; ++c) {
      const double a = double(p.x(t, c)) * w_gate(f, c), b = double(p.x(t, c)) * w_up(f, c);
      gate += a, up += b, gates += std::abs(a), ups += std::abs(b);
    }
    const double silu = gate / (1 + std::exp(-gate)), h = silu * up;
    const double of_sums =
        2 * double(C) * u_float * (1.1 * gates * std::abs(up) + std::abs(silu) * ups);
    row.h.push_back(h);
    row.bound.push_back(1.01 * (u_bf16 * std::abs(h) + 2 * (of_sums + 8 * u_float * std::abs(h))));
  }
  return row;
}

/// What hidden and y should be, with bounds: hidden in float64, y by the formula. y is a sum of F
/// products for each of k choices, each off by the error of its hidden number, and by that of its
/// additions, again twice.
struct Expected {
  std::vector<double> hidden, hidden_bound;  // [T·k, F]
  std::vector<double> y, y_bound;            // [T, C]
};
inline Expected expected(const Problem& p) {
  const auto C = std::size_t(p.n.C), F = std::size_t(p.n.F), k = std::size_t(p.n.k);
  const Tensor<2> formula = mixture_of_experts(p.x, p.view());
  const std::size_t choices = p.routed.experts.size();
  Expected e{std::vector<double>(choices * F), {}, {formula.begin(), formula.end()}, {}};
  e.hidden_bound = e.hidden, e.y_bound.resize(e.y.size());
  for (std::size_t choice = 0; choice < choices; ++choice) {
    const std::size_t t = choice / k, expert = p.routed.experts[choice];
    const HiddenRow row = hidden_row(p, expert, t);
    const long first = long(p.assignment.rows[choice] * F);
    std::ranges::copy(row.h, e.hidden.begin() + first);
    std::ranges::copy(row.bound, e.hidden_bound.begin() + first);
    const Tensor<2>& w_down = p.experts[expert].w_down.floats();
    for (std::size_t c = 0; c < C; ++c)
      for (std::size_t f = 0; f < F; ++f)
        e.y_bound[t * C + c] +=
            double(p.routed.weights.data()[choice]) * std::abs(double(w_down(c, f))) *
            (row.bound[f] + 4 * double(F + k + 2) * u_float * std::abs(row.h[f]));
  }
  return e;
}

}  // namespace t2t
