#include "17_fine_tuning/shows/show_adapter.hpp"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "01_embedding/embedding.hpp"
#include "09_language_model/accounts/accounts.hpp"
#include "13_training/shows/show_gradients.hpp"
#include "13_training/text/passages.hpp"
#include "17_fine_tuning/lora.hpp"
#include "memory.hpp"
#include "program/print.hpp"

namespace t2t {

static const std::vector<std::string> matrices = {"w_q", "w_k", "w_v", "w_o", "w_up", "w_down"};

/// Parameters of A and B for the six matrices of each block.
static std::size_t adapter_numbers(const Config& config, std::size_t r) {
  const BlockSettings& s = config.block;
  const std::size_t q = s.H * s.D, kv = s.G * s.D;
  const std::size_t sides = 2 * (s.C + q) + 2 * (s.C + kv) + 2 * (s.C + s.F);
  return config.L * r * sides;
}

void show_adapter_sizes() {
  const Config config = preset("smollm2-135m");
  const std::size_t all = total(count_parameters(config));
  print_section(fmt::format("What is trained, of {} parameters of SmolLM2-135M", with_commas(all)));
  Table table({">rank", ">parameters of A and B", ">share", ">gradients and AdamW's two means"});
  const auto add = [&](const std::string& rank, std::size_t numbers) {
    table.add({rank, with_commas(numbers),
               fmt::format("{:.2f} %", 100 * double(numbers) / double(all)),
               bytes_text(3 * sizeof(float) * double(numbers))});
  };
  for (const std::size_t r : {1, 4, 8, 16, 64})
    add(fmt::format("{}", r), adapter_numbers(config, r));
  add("all weights", all);
  table.print();
  fmt::print("\n");
  print_paragraph(
      "A and B belong to w_q, w_k, w_v, w_o, w_up and w_down of each block. The weights themselves "
      "also stay in memory, whatever is trained.");
}

// What the small model is taught: the beginning of Caesar's Gallic War.
static constexpr const char* latin =
    "Gallia est omnia divisa in partes tres, quarum unam incolunt Belgae, aliam Aquitani, tertiam "
    "qui ipsorum lingua Celtae, nostra Galli appellantur. Hi omnes lingua, institutis, legibus "
    "inter se differunt.";

static constexpr std::size_t T = 64, lesson_steps = 60;

/// The weights of a small model that has read a part of the text.
static ModelWeights pretrained(const Config& config, const std::vector<int>& ids,
                               std::uint64_t seed) {
  constexpr std::size_t steps = 100;
  Random random(seed);
  TrainingOptions options{.B = 12, .T = T, .seed = seed};
  options.schedule = {.peak = 6e-3f, .floor = 6e-4f, .warmup = steps / 10, .steps = steps};
  Trainer trainer(Model(config, draw_model(config, random)), options, ids);
  for (std::size_t n = 0; n < steps; ++n) trainer.step();
  return trainer.model().weights();
}

struct Losses {
  double lines, text;
};
/// Mean losses of the lines and of held-out text, in nats per byte.
static Losses losses_of(const Model& model, const Batch& lines, const Batch& text) {
  Gradients of_lines(model.config(), lines.B, T), of_text(model.config(), text.B, T);
  return {of_lines.loss(model, lines) / double(lines.ids.size()),
          of_text.loss(model, text) / double(text.ids.size())};
}

static LoraOptions options_of(std::size_t rank, std::size_t B) {
  return {.rank = rank,
          .alpha = 2 * float(rank),
          .matrices = matrices,
          .B = B,
          .T = T,
          .schedule = {1e-2f, 1e-3f, lesson_steps / 20, lesson_steps}};
}

Tensor<2> show_small_adapters(const std::string& text, std::uint64_t seed) {
  const SplitText split = split_by_passage(text);
  const std::vector<int> lines_ids = byte_ids(latin), held_out = byte_ids(split.held_out);
  const Batch lines = first_batch(lines_ids, 3, T), other = first_batch(held_out, 64, T);
  const Config config = small_config(64, 2, T);
  const ModelWeights weights = pretrained(config, byte_ids(split.train), seed);

  print_section("A small model learns two sentences of Latin");
  Table table({"what is trained", ">parameters", ">Latin", ">held-out text of the book"});
  std::vector<Losses> all;
  const auto add = [&](const std::string& what, std::size_t numbers, const Model& taught) {
    const Losses losses = all.emplace_back(losses_of(taught, lines, other));
    table.add({what, numbers > 0 ? with_commas(numbers) : "", fmt::format("{:.3f}", losses.lines),
               fmt::format("{:.3f}", losses.text)});
  };
  add("nothing yet", 0, Model(config, weights));
  for (const std::size_t rank : {1, 4, 16}) {
    LoraTrainer trainer(Model(config, weights), options_of(rank, lines.B));
    for (std::size_t n = 0; n < lesson_steps; ++n) trainer.step_on(lines);
    add(fmt::format("an adapter of rank {}", rank), trainer.parameters(), trainer.model());
  }
  TrainingOptions options{.B = lines.B, .T = T};
  options.schedule = {2e-3f, 2e-4f, lesson_steps / 20, lesson_steps};
  Trainer trainer(Model(config, weights), options, lines_ids);
  for (std::size_t n = 0; n < lesson_steps; ++n) trainer.step_on(lines);
  add("all weights", total(count_parameters(config)), trainer.model());
  table.print();
  fmt::print("\n");
  print_paragraph(
      fmt::format("Losses in nats per byte, after {} steps on the same {} bytes. The model "
                  "pays for what it learns with what it forgets. The smallest adapter holds a "
                  "change of rank 1 for each matrix.",
                  lesson_steps, lines.ids.size()));
  fmt::print("\n");
  print_paragraph(
      "Next: ./learn run 17 --fine-tune FILE teaches SmolLM2-135M sixty answers about this book in "
      "a few minutes.");
  Tensor<2> shown = empty(all.size(), 2);
  for (std::size_t i = 0; i < all.size(); ++i)
    shown(i, 0) = float(all[i].lines), shown(i, 1) = float(all[i].text);
  return shown;
}

}  // namespace t2t
