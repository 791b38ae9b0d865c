#include "23_latent/shows/show_steps.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "01_embedding/embedding.hpp"
#include "23_latent/cache/latent_cache.hpp"
#include "linalg.hpp"
#include "program/print.hpp"
#include "timing/measure.hpp"

namespace t2t {

/// The text in steps: half of it at once, then one token after the other.
static Tensor<2> in_steps(const Tensor<2>& x, const LatentWeights& weights,
                          const LatentSettings& settings, const RopeTable& rope,
                          LatentCache& cache) {
  const std::size_t T = x.shape(0);
  LatentScratch scratch(settings, T);
  Tensor<2> y = empty(T, settings.C);
  for (std::size_t t = 0, count = std::max<std::size_t>(T / 2, 1); t < T; t += count, count = 1) {
    const Tensor<2> of_step = latent_step(copy_of(ConstMatrix(x).rows_from(t, count)), weights,
                                          settings, rope, cache, scratch);
    for (std::size_t i = 0; i < count; ++i)
      std::ranges::copy(row(of_step, i), row(y, t + i).begin());
  }
  return y;
}

void show_steps(const Program& program, const LatentSettings& settings, std::size_t most_tokens) {
  const auto& [C, H, N, R, Dv, K, Q, m, pairing, eps] = settings;
  const std::vector<int> ids = byte_ids(program.text(most_tokens));
  const std::size_t T = ids.size();
  Random random(program.seed());
  const Tensor<2> x = embed(ids, random.normal<2>({256, C}));  // [T, C]
  const LatentWeights weights = draw_latent_weights(settings, random);
  const RopeTable rope = rope_table(T, rope_frequencies(R));
  const Tensor<2> whole = latent_attention(x, weights, settings, rope);
  LatentCache cache = make_latent_cache(settings, T);
  const Tensor<2> steps = in_steps(x, weights, settings, rope, cache);
  float largest = 0, difference = 0;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    largest = std::max(largest, std::abs(whole.data()[i]));
    difference = std::max(difference, std::abs(whole.data()[i] - steps.data()[i]));
  }

  print_section("A text in steps");
  print_shapes({{"x", {T, C}, "each row is a token"},
                {"q", {T, H * (N + R)}, "H queries per token, the last R channels rotated"},
                {"cache", {T, K + R}, "c and the rotated key, for all heads"},
                {"q absorbed", {H, K + R}, "of one new token"},
                {"z", {H, K}, "each head's mean of the latents"},
                {"heads", {1, H * Dv}, "attention's output"},
                {"y", {T, C}, "heads · w_oᵀ"}});
  fmt::print("\n");
  print_paragraph(fmt::format(
      "{} tokens at once, in the plain form, and {} one by one, in the absorbed form, give what "
      "the whole text gives: {}. The cache holds {} elements per token. The expanded keys and "
      "values would be {}.",
      std::max<std::size_t>(T / 2, 1), T - std::max<std::size_t>(T / 2, 1),
      difference < 1e-5f * largest ? "every element within a hundred-thousandth of the largest"
                                   : "no, they differ",
      K + R, H * (N + R + Dv)));
  program.save("x", x);
  program.save("cache", cache.rows);
  program.save("y", whole);
}

void show_latent_speed() {
  print_section("Speed");
  const LatentSettings settings{.C = 2048, .H = 16, .N = 128, .R = 64, .Dv = 128, .K = 512};
  const std::size_t S = 4096;
  const Tensor<2> q = xt::ones<float>({1ul, settings.H * settings.query_width()});
  const Tensor<2> rows = Random(1).normal<2>({S, settings.row_width()}, 0.1f);
  const Tensor<2> w_kvb =
      Random(2).normal<2>({settings.H * (settings.N + settings.Dv), settings.K}, 0.04f);
  Tensor<2> out = empty(1, settings.H * settings.Dv);
  LatentScratch scratch(settings, S);
  const double seconds = median_seconds(
      [&] { latent_decode(row(q, 0), rows, w_kvb, settings, row(out, 0), scratch); });
  print_roofline_bytes(fmt::format("16 heads over {} latents", S), seconds,
                       double(rows.size() + w_kvb.size()) * sizeof(float), read_bandwidth(),
                       "reading memory");
  print_roofline_flops("the same", seconds,
                       double(S) * 2 * 16 * (2 * double(settings.K) + double(settings.R)));
  fmt::print("\n");
  print_paragraph("Next: ./learn run 24, attention without a cache; the page: docs/23_latent.md");
}

}  // namespace t2t
