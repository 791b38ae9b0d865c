#include "17_fine_tuning/program/lora_scores.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "09_language_model/generate.hpp"
#include "10_pretrained/chat/chat.hpp"
#include "10_pretrained/check/perplexity.hpp"
#include "10_pretrained/tokenizer/utf8.hpp"
#include "program/print.hpp"

namespace t2t {

/// Asks each question in a conversation of its own.
static std::vector<std::string> answers_of(const Model& model, const Bpe& bpe,
                                           const LoraTexts& texts,
                                           const std::vector<QuestionAnswer>& questions) {
  const ChatTemplate chat(bpe, texts.style);
  std::vector<std::string> answers;
  Random random(1);
  for (const QuestionAnswer& question : questions) {
    std::vector<int> prompt = chat.opening(texts.system);
    const std::vector<int> ids = chat.question(question.question);
    prompt.insert(prompt.end(), ids.begin(), ids.end());
    constexpr std::size_t most = 48;
    ModelState state(model.config(), prompt.size() + most);
    const Generation generation{
        .most = most, .stop_tokens = bpe.ends(), .sampling = {.temperature = 0}};
    answers.push_back(
        without_controls(bpe.said(generate(model, state, prompt, generation, random))));
  }
  return answers;
}

/// Mean loss of all lessons' answers, in nats per token.
static double loss_of_all(LoraTrainer& trainer, Batch& batch, const std::vector<Lesson>& lessons) {
  double sum = 0;
  std::size_t learned = 0;
  for (std::size_t first = 0; first < lessons.size(); first += batch.B) {
    fill(batch, lessons, first, true);
    const std::size_t here = count_learned(batch.targets);
    sum += trainer.loss_of(batch) * double(here), learned += here;
  }
  return learned > 0 ? sum / double(learned) : 0;
}

static void show_answers(const std::vector<QuestionAnswer>& questions,
                         const std::vector<std::string>& before,
                         const std::vector<std::string>& after) {
  for (std::size_t i = 0; i < before.size(); ++i) {
    print_paragraph("Question: " + questions[i].question);
    print_paragraph("  before: " + before[i]);
    print_paragraph("  after:  " + after[i]);
    fmt::print("\n");
  }
}

LoraScores scores_of(LoraTrainer& trainer, Batch& batch, const LoraTexts& texts, const Bpe& bpe) {
  return {loss_of_all(trainer, batch, texts.lessons),
          loss_of_all(trainer, batch, texts.held_out_lessons),
          perplexity_of(texts.other, trainer.model(),
                        std::min<std::size_t>(256, trainer.model().config().T_max))
              .perplexity,
          answers_of(trainer.model(), bpe, texts, texts.some()),
          answers_of(trainer.model(), bpe, texts, texts.held_out)};
}

void show_scores(const LoraTexts& texts, const LoraScores& before, const LoraScores& after,
                 double speed) {
  const bool asks = !texts.held_out.empty();
  fmt::print("\n");
  Table table({"what", ">before", ">after"});
  const auto add = [&](const char* what, double x, double y) {
    table.add({what, fmt::format("{:.3f}", x), fmt::format("{:.3f}", y)});
  };
  add("loss of the learned answers", before.learned, after.learned);
  if (asks) add("loss of the held-out answers", before.held_out, after.held_out);
  add("perplexity of other text", before.other, after.other);
  table.print();
  fmt::print("\n");
  print_paragraph(fmt::format("The model learned {:.0f} tokens per second.", speed));
  print_section("Learned questions");
  show_answers(texts.some(), before.answers, after.answers);
  if (asks) print_section("Held-out questions");
  show_answers(texts.held_out, before.held_out_answers, after.held_out_answers);
}

}  // namespace t2t
