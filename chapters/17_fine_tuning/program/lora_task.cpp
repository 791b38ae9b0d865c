#include "17_fine_tuning/program/lora_task.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <sstream>
#include <stdexcept>
#include <utility>
#include <vector>

#include "10_pretrained/chat/chat.hpp"
#include "10_pretrained/model/architecture.hpp"
#include "10_pretrained/model/load_model.hpp"
#include "10_pretrained/model/save_model.hpp"
#include "10_pretrained/program/open_session.hpp"
#include "17_fine_tuning/program/lora_scores.hpp"
#include "files/files.hpp"
#include "program/print.hpp"
#include "program/progress.hpp"
#include "shapes.hpp"
#include "timing/measure.hpp"

namespace t2t {

std::string text_beside(const std::string& name) { return T2T_TEXTS "/" + name; }

void add_flags(Program& program, LoraFlags& flags) {
  program.output("fine-tune", flags.fine_tune,
                 "teach a model the answers to some questions, and write the LoRA adapter to FILE");
  program.input("model", flags.model, "the GGUF file of the model to fine-tune");
  program.input("questions", flags.questions, "questions with answers to learn");
  program.input("ask", flags.ask,
                "questions with answers to ask but not to learn; with --questions: none");
  program.input("other", flags.other, "other text, to see what is forgotten");
  program.output("merge", flags.merge,
                 "write the model with the adapter merged into it to this file");
  program.word("matrices", flags.matrices, "matrices of each block to adapt");
  program.size("rank", flags.rank, "r, rank of the adapter");
  program.size("epochs", flags.epochs, "how often each answer is trained on");
  program.size("lessons", flags.batch, "questions per step");
  program.number("lora-rate", flags.rate, "highest learning rate of the adapter");
}

static std::vector<std::string> split_words(const std::string& text) {
  std::vector<std::string> words;
  std::istringstream stream(text);
  for (std::string word; std::getline(stream, word, ',');) words.push_back(word);
  return words;
}

LoraOptions lora_options(const LoraFlags& flags) {
  return {
      .rank = flags.rank, .alpha = 2 * float(flags.rank), .matrices = split_words(flags.matrices)};
}

static LoraOptions options_of(const LoraFlags& flags, std::size_t T, std::size_t lessons,
                              std::uint64_t seed) {
  const std::size_t steps = std::max<std::size_t>(1, flags.epochs * lessons / flags.batch);
  LoraOptions options = lora_options(flags);
  options.B = flags.batch, options.T = T;
  options.schedule = {flags.rate, flags.rate / 10, steps / 20, steps};
  options.seed = seed;
  return options;
}

/// All steps. Returns the tokens read per second, without the padding of batches.
static double teach(LoraTrainer& trainer, const LoraOptions& options, Batch& batch,
                    const std::vector<Lesson>& lessons) {
  const auto began = std::chrono::steady_clock::now();
  std::size_t read = 0;
  for (std::size_t n = 0; n < options.schedule.steps; ++n) {
    fill(batch, lessons, n * batch.B);
    for (std::size_t b = 0; b < batch.B; ++b)
      read += lessons[(n * batch.B + b) % lessons.size()].ids.size() - 1;
    const StepReport step = trainer.step_on(batch);
    show_progress(fmt::format("{}  loss {:.3f}  {:.0f} tokens/s ",
                              steps_done(step.n, options.schedule.steps), step.loss,
                              double(read) / seconds_since(began)));
  }
  show_progress("");
  return double(read) / seconds_since(began);
}

static LoraTexts read_texts(const Program& program, const LoraFlags& flags, const GgufFile& file,
                            const Bpe& bpe) {
  LoraTexts texts;
  texts.questions = read_questions(flags.questions);
  if (program.given("ask") || !program.given("questions"))
    texts.held_out = read_questions(flags.ask);
  texts.other = ids_to_score(bpe, flags.other);
  texts.system = default_system_prompt(file);
  texts.style = chat_style(file);
  texts.lessons = lessons_of(texts.questions, bpe, texts.system, texts.style);
  texts.held_out_lessons = lessons_of(texts.held_out, bpe, texts.system, texts.style);
  const std::size_t T_max = read_config(file).T_max;
  expect_lengths(flags.questions, texts.lessons, T_max);
  expect_lengths(flags.ask, texts.held_out_lessons, T_max);
  return texts;
}

static void show_plan(const LoraTrainer& trainer, const LoraFlags& flags,
                      const LoraOptions& options, std::size_t questions) {
  print_section(fmt::format("Fine-tuning on {} questions", questions));
  print_paragraph(fmt::format(
      "{} of {} parameters are trained: A and B of rank {} for {} of each block. {} steps of {} "
      "conversations of up to {} tokens.",
      with_commas(trainer.parameters()), with_commas(parameter_count(trainer.model().weights())),
      flags.rank, flags.matrices, options.schedule.steps, options.B, options.T));
}

static int fine_tune(const Program& program, const LoraFlags& flags) {
  expect(flags.rate > 0, "--lora-rate", "more than 0", flags.rate);
  expect_writable(flags.fine_tune);
  if (!flags.merge.empty()) expect_writable(flags.merge);
  const GgufFile file = open_model(flags.model);
  const Bpe bpe = read_tokenizer(file);
  const LoraTexts texts = read_texts(program, flags, file, bpe);

  const std::size_t T = std::max(longest(texts.lessons), longest(texts.held_out_lessons));
  const LoraOptions options = options_of(flags, T, texts.lessons.size(), program.seed());
  LoraTrainer trainer(read_model(file), options);
  Batch batch = make_batch(options.B, T);
  if (!texts.style.note.empty()) print_paragraph(texts.style.note);
  show_plan(trainer, flags, options, texts.questions.size());
  const LoraScores before = scores_of(trainer, batch, texts, bpe);
  const double speed = teach(trainer, options, batch, texts.lessons);
  show_scores(texts, before, scores_of(trainer, batch, texts, bpe), speed);

  save_adapter(flags.fine_tune, trainer.adapter());
  print_paragraph(fmt::format("./learn run 10 --adapter {} --chat talks to it.", flags.fine_tune));
  if (!flags.merge.empty())
    save_model(flags.merge, trainer.model().config(), trainer.model().weights(), read_tables(file),
               "fine-tuned", file.metadata().text("tokenizer.chat_template"));
  return 0;
}

Task fine_tune_task(const Program& program, const LoraFlags& flags) {
  return {"fine-tune",
          {"model", "questions", "ask", "other", "merge", "matrices", "rank", "epochs", "lessons",
           "lora-rate", "seed"},
          [&] { return fine_tune(program, flags); }};
}

}  // namespace t2t
