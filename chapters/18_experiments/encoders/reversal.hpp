// A task for the encoder-decoder of chapter 09: it reads a word and writes it backwards. It needs
// the whole source before its first letter, and attention must find a position, not a meaning.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "13_training/trainer/optimizer.hpp"
#include "18_experiments/encoders/encoder_decoder_backward.hpp"

namespace t2t {

/// The letters a to z are tokens 0 to 25. An answer begins after `start_of_word` and ends with
/// `end_of_word`.
constexpr int start_of_word = 26, end_of_word = 27;
constexpr std::size_t letter_tokens = 28;

/// The text's different words of these lengths with only the letters a to z, in alphabetical order.
std::vector<std::string> words_of(std::string_view text, std::size_t shortest, std::size_t longest);

std::vector<int> letter_ids(std::string_view word);
/// The word, and its letters from the last to the first.
TextPair reversal_of(std::string_view word);
/// Answers a source, with at most so many letters.
using AnswerWord = std::function<std::vector<int>(std::span<const int> source, std::size_t most)>;
/// The share of words answered backwards without a mistake: by any model, or by an encoder-decoder
/// that chooses the likeliest letter each time. Throws std::invalid_argument when there is no word.
double share_reversed(std::span<const std::string> words, const AnswerWord& answer);
double share_reversed(const EncoderDecoder& model, std::span<const std::string> words);

/// B pairs, each drawn from all.
std::vector<const TextPair*> draw_pairs(std::span<const TextPair> pairs, std::size_t B,
                                        Random& random);

/// Trains an encoder-decoder on pairs.
class PairTrainer {
 public:
  /// Each step trains on B pairs, drawn by `seed`. The pairs must outlive it. Throws as Optimizer
  /// does, and std::invalid_argument when B is 0 or there is no pair.
  PairTrainer(EncoderDecoder model, const StepOptions& options, std::span<const TextPair> pairs,
              std::size_t B, std::uint64_t seed);
  PairTrainer(const PairTrainer&) = delete;

  StepReport step();
  const EncoderDecoder& model() const { return model_; }

 private:
  EncoderDecoder model_, gradients_;
  std::span<const TextPair> pairs_;
  std::size_t B_;
  Random random_;
  Optimizer optimizer_;
};

}  // namespace t2t
