#include "06_gqa/fast/decode_attention.hpp"

#include <algorithm>
#include <cmath>

namespace t2t {

std::size_t stretch_count(std::size_t S) {
  return S / stretch_keys + (S % stretch_keys != 0 ? 1 : 0);
}

namespace {

float dot(ConstRow a, ConstRow b) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::size_t d = 0; d < a.size(); ++d) sum += a[d] * b[d];
  return sum;
}

/// Scores become weights. Returns log of the sum of e^score.
float weigh(Row scores, float scale) {
  const float highest = *std::ranges::max_element(scores);
  float sum = 0;
  for (float& score : scores) {
    score = std::exp(scale * (score - highest));
    sum += score;
  }
  for (float& score : scores) score /= sum;
  return scale * highest + std::log(sum);
}

void attend_one(ConstRow query, std::span<const KeyPiece> pieces, Row scores, Row out,
                float& log_sum, const ScoreRule& rule) {
  std::size_t filled = 0;
  for (const KeyPiece& piece : pieces)
    for (std::size_t s = 0; s < piece.k.rows; ++s) scores[filled++] = dot(query, piece.k.row(s));

  log_sum = weigh(scores, cap_row(scores, rule, query.size()));

  for (float& value : out) value = 0;
  std::size_t used = 0;
  for (const KeyPiece& piece : pieces)
    for (std::size_t s = 0; s < piece.v.rows; ++s, ++used) {
      const ConstRow value = piece.v.row(s);
      const float weight = scores[s];  // WRONG
      for (std::size_t d = 0; d < out.size(); ++d) out[d] += weight * value[d];
    }
}

}  // namespace

void attend_stretch(ConstMatrix q, std::span<const KeyPiece> pieces, Matrix scores, Matrix out,
                    Matrix log_sums, const ScoreRule& rule) {
  for (std::size_t n = 0; n < q.rows; ++n)
    attend_one(q.row(n), pieces, scores.row(n), out.row(n), log_sums.row(n)[0], rule);
}

void attend_stretch(ConstMatrix q, ConstMatrix k, ConstMatrix v, Matrix scores, Matrix out,
                    Matrix log_sums, const ScoreRule& rule) {
  const KeyPiece all[] = {{k, v}};
  attend_stretch(q, std::span<const KeyPiece>(all), scores, out, log_sums, rule);
}

void join_stretches(ConstMatrix stretches, ConstRow log_sums, Row out) {
  const float highest = *std::ranges::max_element(log_sums);
  std::ranges::fill(out, 0.0f);
  float total = 0;
  for (std::size_t p = 0; p < stretches.rows; ++p) {
    const float share = std::exp(log_sums[p] - highest);
    total += share;
    const ConstRow part = stretches.row(p);
    for (std::size_t d = 0; d < out.size(); ++d) out[d] += share * part[d];
  }
  const float divisor = total;
  std::ranges::transform(out, out.begin(), [divisor](float x) { return x / divisor; });
}

}  // namespace t2t
