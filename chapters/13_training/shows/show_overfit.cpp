#include "13_training/shows/show_overfit.hpp"

#include <fmt/format.h>

#include "09_language_model/generate.hpp"
#include "13_training/shows/show_gradients.hpp"
#include "13_training/trainer/trainer.hpp"
#include "program/print.hpp"

namespace t2t {

std::string continued(const Model& model, std::span<const int> prompt, std::size_t tokens,
                      const Sampling& sampling, std::uint64_t seed) {
  ModelState state(model.config(), prompt.size() + tokens);
  Random random(seed);
  std::string text;
  generate(model, state, prompt, {.most = tokens, .sampling = sampling}, random, [&](int id) {
    text += char(id);
    return true;
  });
  return text;
}

void show_overfit(const std::vector<int>& ids, std::uint64_t seed) {
  constexpr std::size_t B = 4, T = 32, steps = 150;
  const Config config = small_config(64, 2, 2 * T);
  Random random(seed);
  Trainer trainer(Model(config, draw_model(config, random)),
                  {.B = B, .T = T, .schedule = {3e-3f, 3e-3f, 10, steps}, .adamw = {.decay = 0}},
                  ids);
  const Batch batch = first_batch(ids, B, T);
  print_section("One batch, memorized");
  Table table({">step", ">loss", ">|gradient|", ">update / weights"});
  for (std::size_t n = 1; n <= steps; ++n) {
    const StepReport step = trainer.step_on(batch);
    if (n == 1 || n % 30 == 0)
      table.add({std::to_string(n), fmt::format("{:.3f}", step.loss),
                 fmt::format("{:.3f}", step.gradient_norm),
                 fmt::format("{:.4f}", step.update_ratio)});
  }
  table.print();
  fmt::print("\n");
  const std::span<const int> prompt = std::span(ids).first(T / 2);
  print_paragraph(fmt::format(
      "Given the first {} bytes of the text, the model now continues, in brackets:", T / 2));
  fmt::print("\n    {}[{}]\n", visible(std::string(prompt.begin(), prompt.end())),
             visible(continued(trainer.model(), prompt, T / 2, {}, seed)));
}

}  // namespace t2t
