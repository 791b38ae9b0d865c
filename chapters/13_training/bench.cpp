// Times a step of training compared with the matrix products that it needs and with a step that has
// another norm, and the backward pass of attention compared with its forward pass.
#include "timing/bench.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "09_language_model/accounts/accounts.hpp"
#include "11_flash_attention/flash_attention.hpp"
#include "13_training/attention/attention_backward.hpp"
#include "13_training/trainer/trainer.hpp"
#include "linalg.hpp"

namespace t2t {

/// The matrix products of a step and nothing else: forward, and two backward for each weight.
class BareProducts {
 public:
  BareProducts(const Config& config, std::size_t N) : L_(config.L), N_(N) {
    const BlockSettings& s = config.block;
    for (const auto& [out, in] : {std::pair{s.H * s.D, s.C},
                                  {s.G * s.D, s.C},
                                  {s.G * s.D, s.C},
                                  {s.C, s.H * s.D},
                                  {s.F, s.C},
                                  {s.F, s.C},
                                  {s.C, s.F}})
      of_block_.push_back(make(out, in));
    head_.push_back(make(config.V, s.C));
  }
  void run() {
    for (std::size_t l = 0; l < L_; ++l)
      for (Product& product : of_block_) run(product);
    for (Product& product : head_) run(product);
  }

 private:
  struct Product {
    Tensor<2> x, w, y;  // [N, in], [out, in], [N, out]
  };
  Product make(std::size_t out, std::size_t in) {
    Random random(1);
    return {random.normal<2>({N_, in}), random.normal<2>({out, in}), empty(N_, out)};
  }
  static void run(Product& p) {
    matmul_bt(ConstMatrix(p.x), ConstMatrix(p.w), Matrix(p.y));
    add_matmul_at(p.y, p.x, p.w);
    matmul(ConstMatrix(p.y), ConstMatrix(p.w), Matrix(p.x));
    p.w.fill(0.01f), p.x.fill(0.01f);  // so that numbers stay small
  }
  std::size_t L_, N_;
  std::vector<Product> of_block_, head_;
};

static void bench_step(Bench& bench) {
  constexpr std::size_t B = 8, T = 256;
  const Config config = preset("foundry-small");
  Random random(1);
  std::vector<int> ids(20 * B * T);
  for (int& id : ids) id = int(random.next_uniform() * double(config.V));
  Trainer trainer(Model(config, draw_model(config, random)), {.B = B, .T = T}, ids);
  BareProducts products(config, B * T);
  const double loss = trainer.step().loss;
  const std::string what = fmt::format("a step of foundry-small, B={} T={}", B, T);
  bench.expect_right(what, std::abs(loss - std::log(double(config.V))) < 0.5);
  bench.against(
      what, [&] { trainer.step(); }, "its products alone", [&] { products.run(); });
}

static void bench_norms(Bench& bench) {
  constexpr std::size_t B = 8, T = 256;
  Config config = preset("foundry-small");
  std::vector<int> ids(20 * B * T, 7);
  Random random(1);
  Trainer rms(Model(config, draw_model(config, random)), {.B = B, .T = T}, ids);
  config.block.norm = Norm::layer;
  Trainer layer(Model(config, draw_model(config, random)), {.B = B, .T = T}, ids);
  bench.against(
      fmt::format("a step with RMSNorm, B={} T={}", B, T), [&] { rms.step(); }, "with LayerNorm",
      [&] { layer.step(); });
}

static void bench_attention(Bench& bench) {
  constexpr std::size_t H = 8, G = 4, D = 32, T = 1024;
  Random random(1);
  const Tensor<2> q = random.normal<2>({T, H * D}), dout = random.normal<2>({T, H * D});
  const Tensor<2> k = random.normal<2>({T, G * D}), v = random.normal<2>({T, G * D});
  Tensor<2> out = empty(T, H * D), dq = empty(T, H * D), dk = empty(T, G * D), dv = dk;
  FlashScratch forward_scratch(H, G, D);
  FlashBackwardScratch scratch(H, G, D, T);
  const auto forward = [&] {
    flash_attention_rows(q, side_by_side(k, v, G), Mask::causal, out, forward_scratch);
  };
  const auto backward = [&] {
    flash_backward({q, k, v, out, dout}, 1, H, G, Mask::causal, {dq, dk, dv}, scratch);
  };
  AttentionGradients want;
  const auto formula = [&] { want = attention_backward(q, k, v, H, G, Mask::causal, dout); };
  forward(), backward(), formula();
  const std::string what =
      fmt::format("attention backward, H={} G={} T={} D={}, causal", H, G, T, D);
  bench.expect_right(what, std::ranges::equal(dq, want.q, [](float a, float b) {
                       return std::abs(a - b) < 1e-4f;
                     }));
  bench.against(what, backward, "the formula", formula);
  bench.against(what, backward, "its forward pass", forward);
}

void bench(Bench& bench) {
  bench_step(bench);
  bench_norms(bench);
  bench_attention(bench);
}

}  // namespace t2t
