// A mixture compared with dense products of as many FLOPs; its work around the experts; packed
// weights; and one token compared with a read of its chosen experts.
#include "timing/bench.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "07_swiglu/fast/feed_forward_rows.hpp"
#include "12_quantization/packed/packed_weight.hpp"
#include "14_mixture_of_experts/experts.hpp"
#include "linalg.hpp"
#include "random.hpp"

namespace t2t {

static constexpr std::size_t E = 8, k = 2, C = 576, F = 1536;

struct BenchMixture {
  Weight router;
  std::vector<FeedForwardWeights> experts;
  explicit BenchMixture(Random& random) {
    router = random.normal<2>({E, C}, 0.04f);
    for (std::size_t e = 0; e < E; ++e)
      experts.push_back(feed_forward_weights(C, F, Activation::swiglu, random));
  }
  Mixture view() const { return {router, experts, Activation::swiglu, {k}}; }
};

/// The same FLOPs without a router: each token goes through k networks, the same for all.
static void bench_prefill(Bench& bench, const BenchMixture& made, std::size_t T) {
  Random random(2);
  const Tensor<2> x = random.normal<2>({T, C}), twice = random.normal<2>({T * k, C});
  Tensor<2> y = empty(T, C), wide = empty(T * k, C);
  ExpertsScratch scratch(T, C, F, E, k, Activation::swiglu);
  FeedForwardScratch dense(T * k, F, Activation::swiglu);
  const std::string what = fmt::format("experts_rows, E={} k={} T={} C={} F={}", E, k, T, C, F);
  experts_rows(x, made.view(), scratch, y);
  const Tensor<2> some = xt::view(x, xt::range(0, 3));
  const Tensor<2> want = mixture_of_experts(some, made.view());
  bench.expect_right(what, std::equal(want.begin(), want.end(), y.begin(),
                                      [](float a, float b) { return std::abs(a - b) < 1e-4f; }));
  bench.against(
      what, [&] { experts_rows(x, made.view(), scratch, y); }, "a dense network on as many rows",
      [&] { feed_forward_rows(twice, made.experts[0], Activation::swiglu, dense, wide); });
}

/// The time of routing, sorting, copying and adding up beside the experts' network calls.
static void bench_around(Bench& bench, const BenchMixture& made, std::size_t T) {
  Random random(4);
  const Tensor<2> x = random.normal<2>({T, C});
  Tensor<2> y = empty(T, C), results = empty(T * k, C);
  ExpertsScratch scratch(T, C, F, E, k, Activation::swiglu);
  experts_rows(x, made.view(), scratch, y);
  const auto calls = [&] {
    for (std::size_t e = 0; e < E; ++e) {
      const std::size_t first = scratch.assignment.begin[e], count = scratch.assignment.count(e);
      if (count > 0)
        feed_forward_rows(Matrix(scratch.gathered).rows_from(first, count), made.experts[e],
                          Activation::swiglu, scratch.feed_forward,
                          Matrix(results).rows_from(first, count));
    }
  };
  bench.against(
      fmt::format("experts_rows, T={}", T), [&] { experts_rows(x, made.view(), scratch, y); },
      "its network calls alone", calls);
}

/// Packed weights are multiplied with x in 8 bits.
static void bench_packed(Bench& bench, const BenchMixture& made, std::size_t T) {
  Random random(5);
  BenchMixture packed = made;
  for (FeedForwardWeights& expert : packed.experts)
    for (Weight* w : {&expert.w_gate, &expert.w_up, &expert.w_down})
      *w = packed_floats(TensorType::q8_0, w->floats());
  const Tensor<2> x = random.normal<2>({T, C});
  Tensor<2> y = empty(T, C);
  ExpertsScratch scratch(T, C, F, E, k, Activation::swiglu);
  bench.against(
      fmt::format("experts_rows in Q8_0, T={}", T),
      [&] { experts_rows(x, packed.view(), scratch, y); }, "the same in floats",
      [&] { experts_rows(x, made.view(), scratch, y); });
}

static void bench_decode(Bench& bench, const BenchMixture& made) {
  Random random(3);
  const Tensor<2> x = random.normal<2>({1, C});
  Tensor<2> y = empty(1, C);
  ExpertsScratch scratch(1, C, F, E, k, Activation::swiglu);
  const double bytes = double((k * 3 * C * F + E * C) * sizeof(float));
  bench.against_read(fmt::format("one token, E={} k={} C={} F={}", E, k, C, F), bytes,
                     [&] { experts_rows(x, made.view(), scratch, y); });
}

void bench(Bench& bench) {
  Random random(1);
  const BenchMixture made(random);
  bench_prefill(bench, made, 512);
  bench_around(bench, made, 512);
  bench_packed(bench, made, 512);
  bench_decode(bench, made);
}

}  // namespace t2t
