// What a fine-tuned model has learned, and what it has forgotten: measured before and after, and
// shown. For lora_task.cpp.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "10_pretrained/tokenizer/bpe.hpp"
#include "17_fine_tuning/conversations.hpp"
#include "17_fine_tuning/lora.hpp"

namespace t2t {

/// What is learned, what is only asked, and what may be forgotten.
struct LoraTexts {
  std::vector<QuestionAnswer> questions, held_out;  // no held-out questions: nothing is asked
  std::vector<Lesson> lessons, held_out_lessons;
  std::vector<int> other;
  std::string system;
  ChatStyle style;

  /// The first few learned questions, to be shown.
  std::vector<QuestionAnswer> some() const {
    return {questions.begin(),
            questions.begin() + long(std::min<std::size_t>(3, questions.size()))};
  }
};

/// What is measured before and after.
struct LoraScores {
  double learned, held_out;  // losses of the answers
  double other;              // perplexity of the other text
  std::vector<std::string> answers, held_out_answers;
};

LoraScores scores_of(LoraTrainer& trainer, Batch& batch, const LoraTexts& texts, const Bpe& bpe);

/// speed: tokens learned per second.
void show_scores(const LoraTexts& texts, const LoraScores& before, const LoraScores& after,
                 double speed);

}  // namespace t2t
