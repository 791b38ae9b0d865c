#include "23_latent/fast/latent_decode.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <stdexcept>

#include "06_gqa/fast/decode_attention.hpp"
#include "rows.hpp"
#include "shapes.hpp"

namespace t2t {

static std::size_t stretches_of(std::size_t S) { return (S + latent_stretch - 1) / latent_stretch; }

LatentScratch::LatentScratch(const LatentSettings& settings, std::size_t S) {
  expect_latent(settings);
  const std::size_t H = settings.H, P = stretches_of(S);
  scores = empty(thread_count(), H * latent_stretch);
  stretches = empty(H * P, settings.K);
  log_sums = empty(H, P);
}

void expect_latent_room(const LatentScratch& scratch, const LatentSettings& settings,
                        std::size_t S) {
  const std::size_t H = settings.H, P = stretches_of(S);
  if (scratch.scores.shape(0) < thread_count() || scratch.scores.shape(1) < H * latent_stretch ||
      scratch.stretches.size() < H * P * settings.K || scratch.log_sums.size() < H * P)
    throw std::invalid_argument(fmt::format(
        "scratch: wanted one made for S = {}, H = {}, K = {} and {} threads or more, got scores "
        "{}, stretches {}, log_sums {}",
        S, H, settings.K, thread_count(), shape_text(scratch.scores.shape()),
        shape_text(scratch.stretches.shape()), shape_text(scratch.log_sums.shape())));
}

void latent_decode(ConstRow absorbed, ConstMatrix rows, const LatentSettings& settings, Row z,
                   LatentScratch& scratch) {
  // Everything is checked here, since nothing may throw inside the parallel loop.
  expect_latent(settings);
  const std::size_t H = settings.H, K = settings.K, width = settings.row_width(), S = rows.rows;
  expect(S >= 1, "S, the cached rows", "at least 1", S);
  expect_shape("absorbed", absorbed, {H * width});
  expect_shape("rows", rows, {S, width});
  expect_shape("z", ConstRow(z), {H * K});
  expect_latent_room(scratch, settings, S);

  // A task is one stretch, for all heads.
  const std::size_t P = stretches_of(S);
  const ConstMatrix queries(absorbed.data(), H, width, width);    // [H, K+R]
  const Matrix stretches(scratch.stretches.data(), H, K, P * K);  // [H, K], of stretch 0
  const Matrix log_sums(scratch.log_sums.data(), H, P, P);        // [H, P]
  for_each_task(P, latent_stretch * width * H, [&](std::size_t p, std::size_t thread) {
    const std::size_t first = p * latent_stretch, count = std::min(latent_stretch, S - first);
    const ConstMatrix keys = rows.rows_from(first, count);  // [count, K+R]
    Matrix of_stretch = stretches;
    of_stretch.data += p * K;
    attend_stretch(queries, keys, keys.cols_from(0, K),
                   {row(scratch.scores, thread).data(), H, count, count}, of_stretch,
                   log_sums.cols_from(p, 1), latent_rule(settings));
  });
  for (std::size_t h = 0; h < H; ++h)
    join_stretches({stretches.row(h).data(), P, K, K}, log_sums.row(h), z.subspan(h * K, K));
}

}  // namespace t2t
