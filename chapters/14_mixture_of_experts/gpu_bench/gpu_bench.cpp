// Times the experts' products on a GPU, for mixtures of two real shapes, and the same products by
// cuBLAS. Our results are checked against float64 before and after they are timed.
//
//   14_mixture_of_experts_gpu_bench [--json FILE] [--only TEXT]
//
// Bytes count the weights of all experts that have a row, each once. cuBLAS receives gathered rows,
// and omits silu and the weighting, so it does less than our kernels. "in one call" is its product
// of a whole list of matrices, "one by one" a product for each expert.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "04_causal_attention/gpu_bench/gpu_problem.hpp"
#include "14_mixture_of_experts/gpu_bench/cublas_products.hpp"
#include "14_mixture_of_experts/kernels/kernels.hpp"
#include "cuda/device.hpp"
#include "cuda/gpu_bench/gpu_report.hpp"
#include "random.hpp"

using namespace t2t;

namespace {

struct Shape {
  const char* name;
  int E, k, C, F;
};

/// The weights of all experts, on the host and on the device.
struct Experts {
  Shape n;
  std::vector<bf16> gate = draw<bf16>(std::size_t(n.E) * n.F * n.C, 1);
  std::vector<bf16> up = draw<bf16>(gate.size(), 2), down = draw<bf16>(gate.size(), 3);
  DeviceBuffer<bf16> on_gate{std::span<const bf16>(gate)}, on_up{std::span<const bf16>(up)};
  DeviceBuffer<bf16> on_down{std::span<const bf16>(down)};
};

/// Which k experts each token has: as if its scores were random.
struct Rows {
  std::vector<int> begin, choices, experts;  // [E + 1], [T·k], [T·k]: the expert of a choice

  Rows(const Shape& n, int T) : begin(std::size_t(n.E) + 1), experts(std::size_t(T) * n.k) {
    Random random(7);
    std::vector<int> all(std::size_t(n.E), 0);
    std::iota(all.begin(), all.end(), 0);
    for (int t = 0; t < T; ++t)
      for (int i = 0; i < n.k; ++i) {
        const int other = i + int(random.next_uniform() * (n.E - i));
        std::swap(all[std::size_t(i)], all[std::size_t(other)]);
        experts[std::size_t(t) * n.k + i] = all[std::size_t(i)];
      }
    choices.resize(experts.size());
    std::iota(choices.begin(), choices.end(), 0);
    std::ranges::stable_sort(choices, {}, [&](int choice) { return experts[std::size_t(choice)]; });
    for (const int e : experts) ++begin[std::size_t(e) + 1];
    std::partial_sum(begin.begin(), begin.end(), begin.begin());
  }
};

/// The experts' products, by one of the kernels.
struct Form {
  const char* what;
  decltype(&launch_expert_hidden) hidden;
  decltype(&launch_expert_results) results;
};
/// Those that this GPU can run.
std::vector<Form> forms() {
  std::vector<Form> all = {{"all three kernels", launch_expert_hidden, launch_expert_results}};
  if (compute_capability() == 90)
    all.push_back(
        {"all three, by wgmma", launch_expert_hidden_warpgroups, launch_expert_results_warpgroups});
  return all;
}

/// T tokens through all of a mixture's kernels.
struct Tokens {
  const Experts& experts;
  int T;
  Shape n = experts.n;
  Rows rows{n, T};
  std::size_t count = rows.choices.size();
  std::vector<bf16> x = draw<bf16>(std::size_t(T) * n.C, 4);
  std::vector<float> weights = std::vector<float>(count, 1.0f / float(n.k));
  DeviceBuffer<bf16> on_x{std::span<const bf16>(x)}, hidden{count * n.F};
  DeviceBuffer<float> on_weights{std::span<const float>(weights)}, results{count * n.C};
  DeviceBuffer<float> y{std::size_t(T) * n.C};
  DeviceBuffer<int> begin{std::span<const int>(rows.begin)};
  DeviceBuffer<int> choices{std::span<const int>(rows.choices)};

  ExpertRows whose() const { return {T, n.k, n.E, begin.data(), choices.data()}; }
  void run_products(const Form& form) {
    form.hidden(whose(), on_x.data(), experts.on_gate.data(), experts.on_up.data(), n.C, n.F,
                hidden.data());
    form.results(whose(), on_weights.data(), hidden.data(), experts.on_down.data(), n.C, n.F,
                 results.data());
  }
  /// So that nothing is right by an earlier run: new memory holds NaN.
  void forget() {
    hidden = DeviceBuffer<bf16>(hidden.size());
    results = DeviceBuffer<float>(results.size());
  }
  void run_combine() { launch_combine(results.data(), T, n.k, n.C, y.data()); }
  void run_all(const Form& form) { run_products(form), run_combine(); }
};

double dot(const bf16* a, const bf16* b, int count) {
  double sum = 0;
  for (int i = 0; i < count; ++i) sum += double(to_float(a[i])) * double(to_float(b[i]));
  return sum;
}

/// The largest error of y[t] as a multiple of its bound, Σ |weight·w_down·hidden| / 256: rounding
/// to bf16 changes a hidden element by at most 1/512 of it, and all else changes by far less.
double token_error(const Tokens& m, const std::vector<float>& y, int t) {
  const auto [name, E, k, C, F] = m.n;
  std::vector<double> want(std::size_t(C), 0), size = want;
  for (int i = 0; i < k; ++i) {
    const std::size_t e = std::size_t(m.rows.experts[std::size_t(t) * k + i]);
    std::vector<double> hidden(std::size_t(F), 0);
    for (int f = 0; f < F; ++f) {
      const std::size_t at = (e * F + f) * C;
      const bf16* token = &m.x[std::size_t(t) * C];
      const double gate = dot(token, &m.experts.gate[at], C);
      hidden[std::size_t(f)] =
          gate / (1 + std::exp(-gate)) * dot(token, &m.experts.up[at], C) / double(k);
    }
    for (int c = 0; c < C; ++c)
      for (int f = 0; f < F; ++f) {
        const double part = double(to_float(m.experts.down[(e * C + c) * F + f])) * hidden[f];
        want[std::size_t(c)] += part, size[std::size_t(c)] += std::abs(part);
      }
  }
  double worst = 0;
  for (std::size_t c = 0; c < want.size(); ++c) {
    const double error = std::abs(double(y[std::size_t(t) * C + c]) - want[c]) / (size[c] / 256);
    worst = error <= worst ? worst : std::isnan(error) ? INFINITY : error;
  }
  return worst;
}

double worst_error(const Tokens& m) {
  synchronize();
  const std::vector<float> y = m.y.download();
  double worst = 0;
#pragma omp parallel for reduction(max : worst)
  for (int i = 0; i < 16; ++i)
    worst = std::max(worst, token_error(m, y, int(long(i) * (m.T - 1) / 15)));
  return worst;
}

/// The three products of all experts that have rows, for cuBLAS, in bf16.
struct ForCublas {
  explicit ForCublas(const Tokens& m)
      : rows(m.count * m.n.C), gate(m.count * m.n.F), up(gate.size()), y(rows.size()) {
    std::vector<bf16> gathered(rows.size());
    for (std::size_t r = 0; r < m.count; ++r)
      std::copy_n(&m.x[std::size_t(m.rows.choices[r] / m.n.k) * m.n.C], m.n.C,
                  &gathered[r * m.n.C]);
    rows.upload(gathered);
    add(m, m.experts.on_gate, m.n.F, m.n.C, rows, gate);
    add(m, m.experts.on_up, m.n.F, m.n.C, rows, up);
    add(m, m.experts.on_down, m.n.C, m.n.F, gate, y);
  }
  /// w holds a matrix [out, in] for each expert.
  void add(const Tokens& m, const DeviceBuffer<bf16>& w, int out, int in,
           const DeviceBuffer<bf16>& from, DeviceBuffer<bf16>& to) {
    std::vector<MatrixProduct> products;
    for (std::size_t e = 0; e < std::size_t(m.n.E); ++e) {
      const std::size_t first = std::size_t(m.rows.begin[e]);
      const int count = m.rows.begin[e + 1] - m.rows.begin[e];
      if (count > 0)
        products.push_back({count, out, in, from.data() + first * in, w.data() + e * out * in,
                            to.data() + first * out});
    }
    all.emplace_back(products);
  }
  void one_by_one() const {
    for (const CublasProducts& products : all) products.one_by_one();
  }
  void in_one_call() const {
    for (const CublasProducts& products : all) products.in_one_call();
  }

  DeviceBuffer<bf16> rows, gate, up, y;
  std::vector<CublasProducts> all;
};

/// Prints and writes a time, in FLOP/s of the three products and in bytes per second of the
/// weights.
void tell(Report& report, const Tokens& m, const char* what, const Times& times) {
  const auto [name, E, k, C, F] = m.n;
  int used = 0;
  for (std::size_t e = 0; e < std::size_t(E); ++e) used += m.rows.begin[e + 1] > m.rows.begin[e];
  const double seconds = times.median / 1000, matrix = double(C) * F;
  const double flops = 6 * double(m.count) * matrix / seconds;
  const double bytes = 3 * used * matrix * sizeof(bf16) / seconds;
  fmt::print(
      "  T={:<6} {:22} {:9.1f} us {:7.1f} TFLOP/s {:5.1f} % of mma.sync {:6.0f} GB/s {:5.1f} % of "
      "a read\n",
      m.T, what, 1000 * times.median, flops / 1e12, 100 * flops / report.limits().mma, bytes / 1e9,
      100 * bytes / report.limits().read);
  report.write(fmt::format(
      R"("kind": "experts", "shape": "{}", "what": "{}", "T": {}, "used": {}, {}, "tflops": {:.2f}, )"
      R"("gb_s": {:.1f})",
      name, what, m.T, used, json(times), flops / 1e12, bytes / 1e9));
}

void run_tokens(Report& report, const Experts& experts, int T) {
  Tokens m{experts, T};
  for (const Form& form : forms()) {
    m.forget();
    const auto times = report.timed(
        fmt::format("{}, T={}, {}", experts.n.name, T, form.what), [&] { m.run_all(form); },
        [&] { return worst_error(m); }, flush_l2);
    if (!times) return;
    tell(report, m, form.what, *times);
  }
  const Times combine = time_calls([&] { m.run_combine(); }, flush_l2);
  const double bytes = double(m.count + std::size_t(T)) * m.n.C * sizeof(float);
  const double speed = bytes / (combine.median / 1000);
  fmt::print("  T={:<6} {:22} {:9.1f} us {:8.0f} GB/s {:5.1f} % of a copy\n", T, "combine alone",
             1000 * combine.median, speed / 1e9, 100 * speed / report.limits().copy);
  report.write(fmt::format(R"("kind": "combine", "shape": "{}", "T": {}, {}, "gb_s": {:.1f})",
                           m.n.name, T, json(combine), speed / 1e9));
  if (!has_cublas()) return;
  const ForCublas cublas(m);
  if (CublasProducts::takes_lists())
    tell(report, m, "cuBLAS, in one call", time_calls([&] { cublas.in_one_call(); }, flush_l2));
  tell(report, m, "cuBLAS, one by one", time_calls([&] { cublas.one_by_one(); }, flush_l2));
}

void measure(Report& report) {
  for (const Shape& n :
       {Shape{"Qwen3-30B-A3B", 128, 8, 2048, 768}, Shape{"Mixtral-8x7B", 8, 2, 4096, 14336}}) {
    const std::string group = fmt::format("{}: {} experts, {} of a token, C={}, F={}, L2 emptied",
                                          n.name, n.E, n.k, n.C, n.F);
    if (!report.begins(group)) continue;
    const double weights = 3.0 * n.E * n.C * n.F * sizeof(bf16);
    if (!report.has_room(n.name, weights + 5.5e9)) continue;
    const Experts experts{n};
    for (const int T : {1, 16, 256, 4096, 16384}) run_tokens(report, experts, T);
  }
}

}  // namespace

int main(int argc, char** argv) { return gpu_bench(argc, argv, measure); }
