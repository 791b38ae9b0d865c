// What must be true of the cache of latents, of its steps and of the kernel for one token.
#include <doctest/doctest.h>

#include <cmath>
#include <stdexcept>
#include <utility>
#include <vector>

#include "23_latent/absorbed.hpp"
#include "23_latent/cache/latent_cache.hpp"
#include "23_latent/latent_in_double.hpp"
#include "rows.hpp"
#include "support/all_close.hpp"
#include "support/allocations.hpp"
#include "support/refuses.hpp"

namespace t2t::latent_cache_test {

using std::size_t;

/// The text in steps of these lengths.
static Tensor<2> in_steps(const Tensor<2>& x, const LatentWeights& w, const LatentSettings& s,
                          const RopeTable& rope, const std::vector<size_t>& lengths,
                          LatentCache& cache) {
  LatentScratch scratch(s, x.shape(0));
  Tensor<2> y = zeros(x.shape(0), s.C);
  size_t t = 0;
  for (const size_t T : lengths) {
    const Tensor<2> part = latent_step(rows_of(x, t, T), w, s, rope, cache, scratch);
    xt::view(y, xt::range(t, t + T), xt::all()) = part;
    t += T;
  }
  return y;
}

TEST_CASE("in steps of any lengths a text gets what it gets as a whole") {
  for (const LatentSettings& s : odd_latents()) {
    CAPTURE(s.H);
    const size_t T = 10;
    const Tensor<2> x = numbers(3, 2, 0, T, s.C);
    const LatentWeights w = made_latent_weights(s);
    const RopeTable rope = rope_table(2 * T, rope_frequencies(s.R));
    const Tensor<2> want = floats_of(latent_layer_in_double(LatentDoubles(x, w), s));
    const double near =
        8 * rounding(s.C + s.Q + s.K + s.N + s.R + T + s.H * s.Dv, 1 + largest_of(want));
    for (const std::vector<size_t>& lengths : {std::vector<size_t>{10},
                                               {4, 1, 1, 1, 1, 1, 1},
                                               {1, 1, 1, 1, 1, 1, 1, 1, 1, 1},
                                               {1, 2, 3, 4}}) {
      CAPTURE(lengths.size());
      LatentCache cache = make_latent_cache(s, T);
      CHECK(all_close(in_steps(x, w, s, rope, lengths, cache), want, near));
      CHECK(cache.length == T);
      CHECK(all_close(cache.rows, latent_rows(x, w, s, rope, 0), near));
    }
  }
}

TEST_CASE("by hand: rows are appended after those that are filled") {
  LatentCache cache = make_latent_cache({.C = 1, .H = 1, .N = 1, .R = 2, .Dv = 1, .K = 1}, 3);
  CHECK(cache.length == 0);
  CHECK(cache.rows.shape(1) == 3);
  cache.rows.fill(9);
  append_latent(cache, Tensor<2>{{1, 2, 3}});
  append_latent(cache, Tensor<2>{{4, 5, 6}});
  CHECK(cache.length == 2);
  CHECK(all_close(cache.rows, Tensor<2>{{1, 2, 3}, {4, 5, 6}, {9, 9, 9}}, 0));
  CHECK(cached_latents(cache).rows == 2);
  CHECK(cached_latents(cache).row(1)[2] == 6);
}

TEST_CASE("by hand: a token of DeepSeek-V3 takes 70,272 bytes, however many heads there are") {
  LatentSettings s{.C = 7168, .H = 128, .N = 128, .R = 64, .Dv = 128, .K = 512};
  CHECK(latent_cache_bytes(61, 1, s, 2) == 70272);
  CHECK(latent_cache_bytes(61, 131072, s, 2) == 70272ul * 131072);
  s.H = 1, s.N = 7, s.Dv = 9;
  CHECK(latent_cache_bytes(61, 1, s, 2) == 70272);
}

TEST_CASE("one token's kernel equals the formula, whatever the number of stretches") {
  for (const LatentSettings& s : odd_latents())
    for (const size_t S : {1, 2, 127, 128, 129, 300}) {
      CAPTURE(s.H);
      CAPTURE(S);
      const Tensor<2> q = numbers(1, 2, 0, 1, s.H * s.query_width());
      Tensor<2> rows = numbers(2, 2, 0, S, s.row_width());
      // The last row matches best: a stretch that is left out, or joined by the wrong share, shows.
      for (float& number : row(rows, S - 1)) number *= 3;
      const Tensor<2> w = made_latent_weights(s).w_kvb;
      const LatentReference want = attend_in_double(Doubles(q), Doubles(rows), Doubles(w), s);
      Tensor<2> out = empty(1, s.H * s.Dv);
      LatentScratch scratch(s, S);
      latent_decode(row(q, 0), rows, w, s, row(out, 0), scratch);
      CHECK(all_close(out, floats_of(want.heads), want.bound));
      CHECK(all_close(out, attend_absorbed(q, rows, w, s), 2 * want.bound));
    }
}

TEST_CASE("one token's kernel allocates nothing") {
  const LatentSettings s = odd_latents()[2];
  const Tensor<2> q = numbers(1, 2, 0, 1, s.H * s.query_width()),
                  rows = numbers(2, 2, 0, 200, s.row_width()), w = made_latent_weights(s).w_kvb;
  Tensor<2> out = empty(1, s.H * s.Dv);
  LatentScratch scratch(s, 200);
  const auto decode = [&] { latent_decode(row(q, 0), rows, w, s, row(out, 0), scratch); };
  decode();
  if (allocations_counted) CHECK(allocates_nothing(3, decode));
}

TEST_CASE("what does not fit is refused by name, and the cache stays as it was") {
  const LatentSettings s = odd_latents()[0];
  REFUSES(make_latent_cache(s, 0), "S, the positions of the cache: wanted at least 1, got 0");
  LatentCache cache = make_latent_cache(s, 2);
  const LatentWeights w = made_latent_weights(s);
  const RopeTable rope = rope_table(8, rope_frequencies(s.R));
  LatentScratch scratch(s, 4);
  REFUSES(append_latent(cache, zeros(0, s.row_width())),
          "T, the new rows: wanted at least 1, got 0");
  REFUSES(append_latent(cache, zeros(1, 12)), "new rows: wanted shape [1, 13], got [1, 12]");
  latent_step(numbers(3, 2, 0, 1, s.C), w, s, rope, cache, scratch);
  REFUSES(latent_step(numbers(3, 2, 0, 2, s.C), w, s, rope, cache, scratch),
          "cache: wanted room for 2 more rows, got 1 of 2 filled");
  REFUSES(latent_step(zeros(1, 12), w, s, rope, cache, scratch),
          "x: wanted shape [1, 13], got [1, 12]");
  CHECK(cache.length == 1);
  LatentScratch none(s, 1);
  none.scores = empty(0, 0);
  CHECK_THROWS_AS(latent_step(numbers(3, 2, 0, 1, s.C), w, s, rope, cache, none),
                  std::invalid_argument);
  CHECK(cache.length == 1);
  Tensor<2> out = empty(1, s.H * s.Dv);
  const Tensor<2> q = zeros(1, s.H * s.query_width());
  const auto decode = [&](const Tensor<2>& rows, Row to) {
    latent_decode(row(q, 0), rows, w.w_kvb, s, to, scratch);
  };
  REFUSES(decode(zeros(0, s.row_width()), row(out, 0)),
          "S, the cached rows: wanted at least 1, got 0");
  REFUSES(decode(zeros(1, 12), row(out, 0)), "rows: wanted shape [1, 13], got [1, 12]");
  REFUSES(decode(zeros(1, 13), row(out, 0).first(5)), "out: wanted shape [18], got [5]");
}

}  // namespace t2t::latent_cache_test
