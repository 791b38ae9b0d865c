// A language model without a network: it counts sequences of up to five tokens. The transformer's
// loss, compared with this one's, shows what it has learned beyond counts.
//
//   p(w | context) = max(count(context w) − D, 0) / count(context) + share·p(w | shorter context)
//
// Each count is discounted by D, and the share removed goes to the context without its first token.
// For these shorter contexts a sequence counts once for each different token before it, not for
// each occurrence: a word that only ever follows one other says little elsewhere. The shortest
// context gives all V tokens the same probability. Kneser and Ney 1995; Chen and Goodman 1998, "An
// Empirical Study of Smoothing Techniques for Language Modeling".
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace t2t {

class NgramModel {
 public:
  /// Counts a text in sequences of up to `order` tokens; a million tokens take about a second. Each
  /// length gets three discounts, from the numbers n1 to n4 of sequences with these counts:
  ///
  ///   y = n1 / (n1 + 2·n2)   D1 = 1 − 2·y·n2/n1   D2 = 2 − 3·y·n3/n2   D3 = 3 − 4·y·n4/n3
  ///
  /// D3 is for counts of 3 and more. Where one of n1 to n4 is 0, as in a small text, or a discount
  /// would not be above 0, all three of this length are fixed: 0.5, 1 and 1.5.
  /// Throws std::invalid_argument when order or V is 0, when there are no ids or 2^32 − 1 and more,
  /// and for an id outside [0, V).
  NgramModel(std::span<const int> ids, std::size_t V, std::size_t order = 5);

  /// p(next | context): what follows the last order − 1 tokens of the context, or as many as it
  /// has. Above 0, and 1 in sum over all V. A context's ids need not be in the vocabulary. Throws
  /// std::invalid_argument when next is outside [0, V).
  double probability(std::span<const int> context, int next) const;

 private:
  /// A sequence of n tokens, at one of its places in the text.
  struct Sequence {
    std::uint32_t at, count;
  };
  /// A context of n − 1 tokens: the sum of the counts of the sequences that begin with it, and the
  /// share that the discounts leave for the shorter context.
  struct Context {
    std::uint32_t at;
    double sum, share;
  };
  struct Level {
    std::vector<Sequence> sequences;      // in the order of their tokens
    std::vector<Context> contexts;        // the same
    std::array<double, 4> discount = {};  // of counts 1, 2, and 3 or more; of 0 it is 0
  };
  std::vector<Sequence> counted(std::vector<std::uint32_t> places, std::size_t n) const;
  Level level(std::vector<Sequence> sequences, std::size_t n) const;
  std::span<const int> tokens(std::uint32_t at, std::size_t n) const {
    return std::span(ids_).subspan(at, n);
  }

  std::vector<int> ids_;
  std::size_t V_;
  std::vector<Level> levels_;  // [order]: level n − 1 holds the sequences of n tokens
};

/// The mean of −ln p(ids[t] | those before it) over t ≥ 1, as chapter 09's next_token_loss:
/// nats per token. Throws std::invalid_argument for fewer than two ids, and as probability does.
double ngram_loss(const NgramModel& model, std::span<const int> ids);

}  // namespace t2t
