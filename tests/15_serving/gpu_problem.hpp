// Sequences in pages for the kernel of chapter 15, what it leaves in memory, and how far from the
// formula's numbers its own may be.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "15_serving/attention/paged_rows.hpp"
#include "15_serving/kernels/kernels.hpp"
#include "cuda/device.hpp"
#include "support/hashed_numbers.hpp"
#include "support/kernels/device_numbers.hpp"

namespace t2t {

struct Heads {
  int H, G, D;
  std::size_t of(int heads) const { return std::size_t(heads) * std::size_t(D); }
};

/// One sequence: the query of its last position, and all of its keys and values, which a bf16
/// holds.
struct PagedText {
  Tensor<2> q, k, v;  // [1, H·D], [S, G·D], [S, G·D]
  std::size_t shared = 0,
              owner = 0;  // its first positions lie in the pages of this earlier sequence
};

/// The scale of the queries sets how far apart the scores lie: with 4, most are between −2 and 2.
inline PagedText made_text(std::uint32_t seed, int S, const Heads& n, float scale = 4) {
  return {rounded(numbers(3 * seed, scale, 0, std::size_t(1), n.of(n.H))),
          rounded(numbers(3 * seed + 1, 4, 0, std::size_t(S), n.of(n.G))),
          rounded(numbers(3 * seed + 2, 4, 0, std::size_t(S), n.of(n.G)))};
}

/// Sequences in a store. Places without a position hold NaN, and some pages belong to no sequence.
struct PagesProblem {
  Heads n;
  std::size_t pages = 0, page_size;
  std::vector<PagedText> sequences;
  std::vector<std::vector<std::size_t>> tables;
  std::vector<int> lengths;
  std::vector<float> keys, values;  // [G, pages, page_size, D]

  PagedLayer layer() const {
    return {keys.data(), values.data(), pages, page_size, std::size_t(n.G), std::size_t(n.D)};
  }
  void place(const PagedText& sequence, const std::vector<std::size_t>& table);
};

/// Writes the positions that a sequence does not share.
inline void PagesProblem::place(const PagedText& sequence, const std::vector<std::size_t>& table) {
  const std::size_t D = std::size_t(n.D), G = std::size_t(n.G);
  for (std::size_t s = sequence.shared; s < sequence.k.shape(0); ++s)
    for (std::size_t g = 0; g < G; ++g) {
      const std::size_t at = ((g * pages + table[s / page_size]) * page_size + s % page_size) * D;
      std::copy_n(&sequence.k(s, g * D), D, &keys[at]);
      std::copy_n(&sequence.v(s, g * D), D, &values[at]);
    }
}

/// Pages are given out to the sequences in turns and from the last but one down, every second of
/// them, so that no sequence has neighbours.
inline PagesProblem in_pages(const std::vector<PagedText>& sequences, const Heads& n,
                             int page_size) {
  PagesProblem made{n, 0, std::size_t(page_size), sequences, {}, {}, {}, {}};
  made.tables.resize(sequences.size());
  std::size_t most = 0, given = 0;
  const auto wanted = [&](std::size_t b) {
    return (sequences[b].k.shape(0) + made.page_size - 1) / made.page_size;
  };
  for (std::size_t b = 0; b < sequences.size(); ++b) {
    most = std::max(most, wanted(b)), made.pages += 2 * wanted(b);
    made.lengths.push_back(int(sequences[b].k.shape(0)));
  }
  for (std::size_t i = 0; i < most; ++i)
    for (std::size_t b = 0; b < sequences.size(); ++b)
      if ((i + 1) * made.page_size <= sequences[b].shared)
        made.tables[b].push_back(made.tables[sequences[b].owner][i]);
      else if (i < wanted(b))
        made.tables[b].push_back(made.pages - 2 - 2 * given++);
  made.keys.assign(made.pages * made.page_size * n.of(n.G),
                   std::numeric_limits<float>::quiet_NaN());
  made.values = made.keys;
  for (std::size_t b = 0; b < sequences.size(); ++b) made.place(sequences[b], made.tables[b]);
  return made;
}

inline DeviceBuffer<bf16> as_bf16(const std::vector<float>& from) {
  return on_device(in_bf16(from));
}

/// The scratch that a problem needs.
inline DecodeSizes scratch_of(const PagesProblem& p) {
  const PagedPlan plan = plan_sequences(p.tables, p.lengths, int(p.pages), int(p.page_size));
  return paged_scratch(p.lengths.size(), std::size_t(plan.stretch_at.back()), p.n.H, p.n.G, p.n.D);
}

/// What the kernel writes, sequence by sequence: [B][H·D]. A block computes `at_once` stretches.
inline std::vector<std::vector<float>> run_in(DecodeScratch& scratch, const PagesProblem& p,
                                              int at_once) {
  const PagedSequences sequences(
      plan_sequences(p.tables, p.lengths, int(p.pages), int(p.page_size), at_once));
  std::vector<float> queries;
  for (const PagedText& sequence : p.sequences)
    queries.insert(queries.end(), sequence.q.begin(), sequence.q.end());
  const DeviceBuffer<bf16> q = as_bf16(queries), keys = as_bf16(p.keys), values = as_bf16(p.values);
  DeviceBuffer<bf16> out(queries.size());
  attend_pages({q.data(), keys.data(), values.data(), out.data(), p.n.H, p.n.G, p.n.D}, sequences,
               scratch);
  std::vector<std::vector<float>> rows(p.sequences.size());
  const std::vector<float> all = floats_of(out.download());
  for (std::size_t i = 0; i < all.size(); ++i) rows[i / p.n.of(p.n.H)].push_back(all[i]);
  return rows;
}

/// The same with a scratch of its own.
inline std::vector<std::vector<float>> run(const PagesProblem& p, int at_once = 1) {
  DecodeScratch scratch(scratch_of(p));
  return run_in(scratch, p, at_once);
}

/// How far a row of the kernel may be from the formula's, for each channel.
///
/// As attention_problem.hpp derives for chapter 11: roundings of float32, u = 2^-24 each, go up as
/// often as down. A score is a sum of D products whose partial sums are some twice `walk`, the root
/// of the sum of their squares, and it is scaled and has the highest taken away, a rounding each of
/// a number up to `top`; sums run over S keys. So weights and their sum are off by in_float, and
/// out by as much of `size` = Σ weights·|v|; all that twice, for the kernel and for the formula.
/// The kernel's log-sum-exps are numbers up to top + log2(S), which is below top + 32: one rounding
/// each, twice. In bf16, each weight is rounded before it meets its value, and out at last.
inline std::vector<double> bounds(const PagedText& sequence, const Heads& n,
                                  std::span<const float> want) {
  const std::size_t S = sequence.k.shape(0), D = std::size_t(n.D), N = std::size_t(n.H / n.G);
  std::vector<double> bound;
  for (std::size_t h = 0; h < std::size_t(n.H); ++h) {
    const std::size_t g = h / N;
    const double scale = 1 / std::sqrt(double(D));
    std::vector<double> weights(S), size(D);
    double highest = -std::numeric_limits<double>::infinity(), sum = 0, walk = 0, top = 0;
    for (std::size_t s = 0; s < S; ++s) {
      double score = 0, squares = 0;
      for (std::size_t d = 0; d < D; ++d) {
        const double product = double(sequence.q(0, h * D + d)) * sequence.k(s, g * D + d);
        score += product, squares += product * product;
      }
      weights[s] = score * scale, highest = std::max(highest, weights[s]);
      walk = std::max(walk, std::sqrt(squares) * scale), top = std::max(top, std::abs(weights[s]));
    }
    for (double& weight : weights) sum += weight = std::exp(weight - highest);
    for (std::size_t s = 0; s < S; ++s)
      for (std::size_t d = 0; d < D; ++d)
        size[d] += weights[s] / sum * std::abs(double(sequence.v(s, g * D + d)));
    const double u = 0x1p-24, in_bf16 = 0x1p-8;
    const double in_float =
        2 * u * (std::sqrt(double(D)) * walk + 2 * top + 8 + std::sqrt(double(S)));
    for (std::size_t d = 0; d < D; ++d)
      bound.push_back((2 * in_float + 2 * u * (top + 32) + in_bf16) * size[d] +
                      in_bf16 * std::abs(double(want[h * D + d])));
  }
  return bound;
}

/// The largest error of a sequence's row, as a share of its bound; infinite for NaN.
inline double worst(const std::vector<float>& got, std::span<const float> want,
                    const std::vector<double>& bound) {
  double most = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    const double error = std::abs(double(got[i]) - double(want[i])) / bound[i];
    most = error <= most ? most : std::isnan(error) ? INFINITY : error;
  }
  return most;
}

}  // namespace t2t
