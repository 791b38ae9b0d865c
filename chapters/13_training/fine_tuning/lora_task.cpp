#include "13_training/fine_tuning/lora_task.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <sstream>
#include <utility>
#include <vector>

#include "09_language_model/generate.hpp"
#include "10_pretrained/chat/chat.hpp"
#include "10_pretrained/check/perplexity.hpp"
#include "10_pretrained/model/load_model.hpp"
#include "10_pretrained/model/save_model.hpp"
#include "10_pretrained/program/open_session.hpp"
#include "13_training/fine_tuning/conversations.hpp"
#include "13_training/fine_tuning/lora.hpp"
#include "program/files.hpp"
#include "program/measure.hpp"
#include "program/print.hpp"
#include "program/progress.hpp"
#include "shapes.hpp"

namespace t2t {

std::string text_beside(const std::string& name) { return T2T_TEXTS "/" + name; }

void add_flags(Program& program, LoraFlags& flags) {
  program.output("fine-tune", flags.fine_tune,
                 "teach a model the answers to some questions, and write the LoRA adapter to FILE");
  program.input("model", flags.model, "the GGUF file of the model to fine-tune");
  program.input("questions", flags.questions, "questions with answers to learn");
  program.input("ask", flags.ask,
                "questions with answers that are asked, and not learned; with --questions: none");
  program.input("other", flags.other, "other text, to see what is forgotten");
  program.output("merge", flags.merge, "write the model with the adapter in it to this file");
  program.word("matrices", flags.matrices, "matrices of each block to adapt");
  program.size("rank", flags.rank, "r, rank of the adapter");
  program.size("epochs", flags.epochs, "how often each answer is learned");
  program.size("lessons", flags.batch, "questions of a step");
  program.number("lora-rate", flags.rate, "highest learning rate of the adapter");
}

static std::vector<std::string> split_words(const std::string& text) {
  std::vector<std::string> words;
  std::istringstream stream(text);
  for (std::string word; std::getline(stream, word, ',');) words.push_back(word);
  return words;
}

/// Asks each question in a conversation of its own.
static std::vector<std::string> answers_of(const Model& model, const Bpe& bpe,
                                           const std::string& system,
                                           const std::vector<Exchange>& exchanges) {
  const ChatTemplate chat(bpe);
  std::vector<std::string> answers;
  Random random(1);
  for (const Exchange& exchange : exchanges) {
    std::vector<int> prompt = chat.opening(system);
    const std::vector<int> question = chat.question(exchange.question);
    prompt.insert(prompt.end(), question.begin(), question.end());
    constexpr std::size_t most = 48;
    ModelState state(model.config(), prompt.size() + most);
    const Generation generation{
        .most = most, .stops = {chat.end()}, .sampling = {.temperature = 0}};
    answers.push_back(
        without_controls(bpe.decode(generate(model, state, prompt, generation, random))));
  }
  return answers;
}

/// Mean loss of all lessons' answers, in nats a token.
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

/// What is measured before and after.
struct LoraScores {
  double learned, held_out;  // losses of the answers
  double other;              // perplexity of the other text
  std::vector<std::string> answers, held_out_answers;
};

static void show_answers(const std::vector<Exchange>& exchanges,
                         const std::vector<std::string>& before,
                         const std::vector<std::string>& after) {
  for (std::size_t i = 0; i < before.size(); ++i) {
    print_paragraph("Question: " + exchanges[i].question);
    print_paragraph("  before: " + before[i]);
    print_paragraph("  after:  " + after[i]);
    fmt::print("\n");
  }
}

static LoraOptions options_of(const LoraFlags& flags, std::size_t T, std::size_t lessons,
                              std::uint64_t seed) {
  const std::size_t steps = std::max<std::size_t>(1, flags.epochs * lessons / flags.batch);
  return {.rank = flags.rank,
          .alpha = 2 * float(flags.rank),
          .matrices = split_words(flags.matrices),
          .B = flags.batch,
          .T = T,
          .schedule = {flags.rate, flags.rate / 10, steps / 20, steps},
          .seed = seed};
}

/// All steps. Returns the tokens that were read in a second, without those that fill up a batch.
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

static int fine_tune(const Program& program, const LoraFlags& flags) {
  expect(flags.rate > 0, "--lora-rate", "more than 0", double(flags.rate));
  expect_writable(flags.fine_tune);
  if (!flags.merge.empty()) expect_writable(flags.merge);
  const std::vector<Exchange> exchanges = read_exchanges(flags.questions);
  const bool asks = program.given("ask") || !program.given("questions");
  const std::vector<Exchange> held_out = asks ? read_exchanges(flags.ask) : std::vector<Exchange>{};
  const GgufFile file = open_model(flags.model);
  const Bpe bpe = read_tokenizer(file);
  const std::vector<int> other = ids_to_score(bpe, flags.other);
  const std::string system = default_system_prompt(file);
  const std::vector<Lesson> lessons = lessons_of(exchanges, bpe, system);
  const std::vector<Lesson> held_out_lessons = lessons_of(held_out, bpe, system);

  const std::size_t T = std::max(longest(lessons), longest(held_out_lessons));
  const LoraOptions options = options_of(flags, T, lessons.size(), program.seed());
  LoraTrainer trainer(read_model(file), options);
  Batch batch{options.B, T, std::vector<int>(options.B * T), std::vector<int>(options.B * T)};
  const std::vector<Exchange> some(
      exchanges.begin(), exchanges.begin() + long(std::min<std::size_t>(3, exchanges.size())));
  const auto score = [&] {
    return LoraScores{loss_of_all(trainer, batch, lessons),
                      loss_of_all(trainer, batch, held_out_lessons),
                      perplexity_of(other, trainer.model(), 256).perplexity,
                      answers_of(trainer.model(), bpe, system, some),
                      answers_of(trainer.model(), bpe, system, held_out)};
  };
  print_section(fmt::format("Fine-tuning on {} questions", exchanges.size()));
  print_paragraph(fmt::format(
      "{} numbers of {} learn: A and B of rank {} in {} of each block. {} steps of {} "
      "conversations "
      "of up to {} tokens.",
      with_commas(trainer.parameters()), with_commas(parameter_count(trainer.model().weights())),
      flags.rank, flags.matrices, options.schedule.steps, options.B, T));
  const LoraScores before = score();
  const double speed = teach(trainer, options, batch, lessons);
  const LoraScores after = score();

  fmt::print("\n");
  Table table({"what", ">before", ">after"});
  const auto add = [&](const char* what, double x, double y) {
    table.add({what, fmt::format("{:.3f}", x), fmt::format("{:.3f}", y)});
  };
  add("loss of the answers that were learned", before.learned, after.learned);
  if (asks) add("loss of the answers that were held out", before.held_out, after.held_out);
  add("perplexity of other text", before.other, after.other);
  table.print();
  fmt::print("\n");
  print_paragraph(fmt::format("{:.0f} tokens/s were learned.", speed));
  print_section("Questions that were learned");
  show_answers(some, before.answers, after.answers);
  if (asks) print_section("Questions that were not learned");
  show_answers(held_out, before.held_out_answers, after.held_out_answers);

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
