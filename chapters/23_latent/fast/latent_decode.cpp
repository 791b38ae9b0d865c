#include "23_latent/fast/latent_decode.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <stdexcept>

#include "06_gqa/fast/decode_attention.hpp"
#include "linalg.hpp"
#include "rows.hpp"
#include "shapes.hpp"

namespace t2t {

static std::size_t stretches_of(std::size_t S) { return (S + latent_stretch - 1) / latent_stretch; }

LatentScratch::LatentScratch(const LatentSettings& settings, std::size_t S) {
  expect_latent(settings);
  const std::size_t H = settings.H, P = stretches_of(S);
  absorbed = empty(H, settings.row_width());
  scores = empty(thread_count(), H * latent_stretch);
  stretches = empty(H * P, settings.K);
  log_sums = empty(H, P);
  z = empty(H, settings.K);
}

void expect_latent_room(const LatentScratch& scratch, const LatentSettings& settings,
                        std::size_t S) {
  const std::size_t H = settings.H, P = stretches_of(S);
  if (scratch.scores.shape(0) < thread_count() || scratch.scores.shape(1) < H * latent_stretch ||
      scratch.absorbed.size() < H * settings.row_width() || scratch.z.size() < H * settings.K ||
      scratch.stretches.size() < H * P * settings.K || scratch.log_sums.size() < H * P)
    throw std::invalid_argument(fmt::format(
        "scratch: wanted one made for S = {}, H = {}, K = {} and {} threads or more, got scores "
        "{}, stretches {}, log_sums {}",
        S, H, settings.K, thread_count(), shape_text(scratch.scores.shape()),
        shape_text(scratch.stretches.shape()), shape_text(scratch.log_sums.shape())));
}

/// (q̃, qʳ) of one head: q̃ is the sum of U's rows, each times an element of qⁿ.
static void absorb_row(ConstRow q, ConstMatrix u, Row absorbed) {
  const Row latent = absorbed.first(u.cols);  // [K]
  std::ranges::fill(latent, 0.0f);
  for (std::size_t n = 0; n < u.rows; ++n) {
    const ConstRow from = u.row(n);
    for (std::size_t k = 0; k < latent.size(); ++k) latent[k] += q[n] * from[k];
  }
  std::ranges::copy(q.subspan(u.rows), absorbed.subspan(u.cols).begin());
}

/// The mean and the log-sum of each head over each stretch. A task is one stretch, for all heads.
static void attend_stretches(ConstMatrix absorbed, ConstMatrix rows, const LatentSettings& settings,
                             LatentScratch& scratch) {
  const std::size_t H = settings.H, K = settings.K, S = rows.rows, P = stretches_of(S);
  const Matrix stretches(scratch.stretches.data(), H, K, P * K);  // [H, K], of stretch 0
  const Matrix log_sums(scratch.log_sums.data(), H, P, P);        // [H, P]
  for_each_task(P, latent_stretch * rows.cols * H, [&](std::size_t p, std::size_t thread) {
    const std::size_t first = p * latent_stretch, count = std::min(latent_stretch, S - first);
    const ConstMatrix keys = rows.rows_from(first, count);  // [count, K+R]
    Matrix of_stretch = stretches;
    of_stretch.data += p * K;
    attend_stretch(absorbed, keys, keys.cols_from(0, K),
                   {row(scratch.scores, thread).data(), H, count, count}, of_stretch,
                   log_sums.cols_from(p, 1), latent_rule(settings));
  });
}

void latent_decode(ConstRow q, ConstMatrix rows, ConstMatrix w_kvb, const LatentSettings& settings,
                   Row out, LatentScratch& scratch) {
  // Everything is checked here, since nothing may throw inside the parallel loops.
  const std::size_t H = settings.H, K = settings.K, S = rows.rows, P = stretches_of(S);
  const std::size_t q_width = settings.query_width(), width = settings.row_width();
  expect(S >= 1, "S, the cached rows", "at least 1", S);
  expect_attendable({q.data(), 1, q.size(), q.size()}, rows, w_kvb, settings);
  expect_shape("out", ConstRow(out), {H * settings.Dv});
  expect_latent_room(scratch, settings, S);

  // Each head's query goes to the latents, and its mean of the latents comes back.
  const Matrix absorbed(scratch.absorbed.data(), H, width, width);  // [H, K+R]
  const Matrix z(scratch.z.data(), H, K, K);                        // [H, K]
  for_each_task(H, settings.N * K, [&](std::size_t h, std::size_t) {
    absorb_row(q.subspan(h * q_width, q_width), key_matrix(w_kvb, settings, h), absorbed.row(h));
  });
  attend_stretches(absorbed, rows, settings, scratch);
  for_each_task(H, settings.Dv * K, [&](std::size_t h, std::size_t) {
    join_stretches({scratch.stretches.data() + h * P * K, P, K, K},
                   {scratch.log_sums.data() + h * P, P}, z.row(h));
    matvec(value_matrix(w_kvb, settings, h), z.row(h), out.subspan(h * settings.Dv, settings.Dv));
  });
}

}  // namespace t2t
