// Times gated_rows compared with copies, and gated networks beside a plain one.
#include "timing/bench.hpp"

#include <cmath>
#include <string>

#include "07_swiglu/fast/activation_rows.hpp"
#include "07_swiglu/fast/feed_forward_rows.hpp"
#include "07_swiglu/fast/feed_forward_weights.hpp"
#include "07_swiglu/feed_forward.hpp"

namespace t2t {

static bool about_equal(const Tensor<2>& a, const Tensor<2>& b, float bound) {
  for (std::size_t i = 0; i < a.size(); ++i)
    if (!(std::abs(a.data()[i] - b.data()[i]) <= bound)) return false;
  return true;
}

/// gated_rows reads two matrices and writes one, all far larger than a cache.
static void bench_rows(Bench& bench) {
  const std::size_t T = 2048, F = 8192;
  const double matrix_bytes = double(T * F * sizeof(float));
  Random random(1);
  const Tensor<2> gate = random.uniform<2>({T, F}, -4, 4), up = random.uniform<2>({T, F}, -4, 4);
  Tensor<2> y = empty(T, F);

  for (const Activation activation :
       {Activation::swiglu, Activation::reglu, Activation::geglu, Activation::geglu_tanh}) {
    const std::string what = std::string(activation_name(activation)) + " rows [2048, 8192]";
    gated_rows(activation, gate, up, y);
    bench.expect_right(what, about_equal(y, gated(activation, gate, up), 1e-4f));
    bench.against_copy(what, 3 * matrix_bytes, [&] { gated_rows(activation, gate, up, y); });
  }
  // In place. shut holds zeros, which every call leaves at zero.
  Tensor<2> shut = xt::zeros<float>({T, F});
  bench.against_update("swiglu rows, written over up", 3 * matrix_bytes,
                       [&] { gated_rows(Activation::swiglu, gate, shut, shut); });
  bench.against(
      "swiglu rows [2048, 8192]", [&] { gated_rows(Activation::swiglu, gate, up, y); },
      "the formula", [&] { y = swiglu(gate, up); });
}

struct Network {
  FeedForwardWeights weights;
  FeedForwardScratch scratch;
  Tensor<2> x, y;  // [T, C]
  Activation activation;

  Network(std::size_t T, std::size_t C, std::size_t F, Activation activation)
      : scratch(T, F, activation), activation(activation) {
    Random random(1);
    weights = feed_forward_weights(C, F, activation, random);
    x = random.normal<2>({T, C});
    y = empty(T, C);
  }
  void run() { feed_forward_rows(x, weights, activation, scratch, y); }
};

/// What the third matrix costs, for one token (each weight is read once) and for a prompt.
static void bench_networks(Bench& bench) {
  const std::size_t C = 1536;
  for (const std::size_t T : {1, 128}) {
    const std::string tokens = T == 1 ? ", 1 token" : ", 128 tokens";
    Network plain(T, C, 4 * C, Activation::gelu_tanh);
    Network equal_width(T, C, 4 * C, Activation::swiglu);
    Network equal_parameters(T, C, gated_width(C), Activation::swiglu);
    equal_parameters.run();
    const Tensor<2> want =
        feed_forward(equal_parameters.x, equal_parameters.weights, Activation::swiglu);
    bench.expect_right("SwiGLU network" + tokens, about_equal(equal_parameters.y, want, 1e-3f));
    bench.against(
        "SwiGLU, F = 4C" + tokens, [&] { equal_width.run(); }, "plain gelu_tanh, F = 4C",
        [&] { plain.run(); });
    bench.against(
        "SwiGLU, F = 8C/3" + tokens, [&] { equal_parameters.run(); }, "plain gelu_tanh, F = 4C",
        [&] { plain.run(); });
    if (T == 1)
      bench.against_read("SwiGLU, F = 8C/3, 1 token",
                         4.0 * double(parameter_count(equal_parameters.weights)),
                         [&] { equal_parameters.run(); });
  }
}

void bench(Bench& bench) {
  bench_rows(bench);
  bench_networks(bench);
}

}  // namespace t2t
