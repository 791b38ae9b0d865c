#include "13_training/shows/show_cost.hpp"

#include <fmt/format.h>

#include "09_language_model/accounts/accounts.hpp"
#include "memory.hpp"
#include "program/print.hpp"
#include "timing/measure.hpp"

namespace t2t {

/// A step's FLOPs: a forward pass, and twice as many for the two products of each backward one.
static double step_flops(const Config& config, std::size_t B, std::size_t T) {
  return 3 * double(B) * total(count_flops(config, T, T, T));
}

void show_memory(const Trainer& trainer) {
  const Config& config = trainer.model().config();
  const std::size_t B = trainer.options().B, T = trainer.options().T;
  const Trainer::Memory memory = trainer.memory();
  const TrainingMemory counted = training_memory(config, B, T, sizeof(float));
  print_section(fmt::format("Memory of a step: {} sequences of {} tokens", B, T));
  Table table({"what", ">here", ">chapter 09's account"});
  const auto add = [&](const char* what, std::size_t here, double account) {
    table.add({what, bytes_text(double(here)), account > 0 ? bytes_text(account) : "-"});
  };
  add("weights", memory.weights, counted.weights);
  add("gradients", memory.gradients, counted.gradients);
  add("AdamW's two running means", memory.optimizer, counted.optimizer);
  add("saved for the backward pass", memory.kept, counted.activations);
  add("attention's weights", 0, counted.attention_weights);
  add("scratch", memory.scratch, 0);
  table.print();
  fmt::print("\n");
  print_paragraph(
      "Less is saved than the account says, because norms, activations and attention's weights are "
      "recomputed, and logits exist only for some rows at a time.");
}

void show_step_speed(Trainer& trainer) {
  const TrainingOptions& o = trainer.options();
  const double flops = step_flops(trainer.model().config(), o.B * o.parts, o.T);
  const double seconds = median_seconds([&] { trainer.step(); });
  const double limit = flops / product_peak();
  fmt::print("\n");
  print_paragraph(fmt::format(
      "A step takes {}: {:.0f} tokens/s. Its {:.1f} GFLOP in matrix products alone would take {} "
      "at this machine's rate, so a step reaches {:.0f} % of it.",
      duration_text(seconds), double(o.B * o.parts * o.T) / seconds, flops / 1e9,
      duration_text(limit), 100 * limit / seconds));
}

}  // namespace t2t
