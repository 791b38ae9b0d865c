// The task of reversal.hpp for a decoder alone: the source and its answer are one sequence.
//
//   ids       k e y ‹start› y e k
//   targets   · · ·    y    e k ‹end›    · is not learned: the source will always be given
//
// Radford et al. 2019, "Language Models are Unsupervised Multitask Learners", section 3.7, asks a
// language model for translations in this way.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "09_language_model/encoder_decoder/encoder_decoder.hpp"
#include "09_language_model/fast/model.hpp"
#include "13_training/trainer/trainer.hpp"
#include "18_experiments/encoders/encoder_decoder_backward.hpp"

namespace t2t {

/// L blocks of chapter 08 with an encoder-decoder's sizes and choices: RMSNorm before each
/// sublayer, a plain network, and sinusoids added to the embedding. The head is a separate matrix.
Config decoder_alone(const EncoderDecoderConfig& sizes, std::size_t L, std::size_t T_max);

/// Its initial weights. The stream starts with values as large as the encoder-decoder's: from N(0,
/// 1), plus the sinusoids. The table of positions holds the sinusoids, and must not be learned.
Model draw_decoder_alone(const Config& config, Random& random);

/// Sequence b of the batch is pair b's source and target, padded with tokens that are not learned.
/// Throws std::invalid_argument unless there are B pairs, each of up to T tokens.
void fill_with_pairs(Batch& batch, std::span<const TextPair* const> pairs);

/// The model's greedy answer after the source and `start`. It ends before the token `stop`, or with
/// `most` tokens.
std::vector<int> greedy_answer(std::span<const int> source, int start, int stop, std::size_t most,
                               const Model& model);
/// The share of words that it writes backwards without a mistake. Throws std::invalid_argument when
/// there is no word.
double share_reversed(const Model& model, std::span<const std::string> words);

/// Trains a decoder alone on pairs.
class AloneTrainer {
 public:
  /// As PairTrainer: with the same seed and B, each step trains on the same pairs. Throws as
  /// Trainer does, and std::invalid_argument when there is no pair or one that is longer than
  /// T_max.
  AloneTrainer(Model model, const StepOptions& options, std::span<const TextPair> pairs,
               std::size_t B, std::uint64_t seed);
  AloneTrainer(const AloneTrainer&) = delete;

  StepReport step();
  const Model& model() const { return trainer_.model(); }

 private:
  std::span<const TextPair> pairs_;
  Random random_;
  std::vector<int> ids_;  // for the trainer's own windows, which are not used
  Batch batch_;
  Trainer trainer_;
};

}  // namespace t2t
