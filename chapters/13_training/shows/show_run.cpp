#include "13_training/shows/show_run.hpp"

#include <fmt/format.h>

#include <vector>

#include "01_embedding/embedding.hpp"
#include "09_language_model/accounts/accounts.hpp"
#include "13_training/shows/show_cost.hpp"
#include "13_training/shows/show_gradients.hpp"
#include "13_training/shows/show_overfit.hpp"
#include "13_training/text/ngram.hpp"
#include "13_training/text/passages.hpp"
#include "13_training/trainer/trainer.hpp"
#include "program/print.hpp"

namespace t2t {

LossCurve show_run(const std::string& text, std::size_t steps, std::uint64_t seed) {
  const SplitText split = split_by_passage(text);
  const std::vector<int> train = byte_ids(split.train), held_out = byte_ids(split.held_out);
  const Config config = small_config(96, 3, 128);
  Random random(seed);
  TrainingOptions options{.B = 12, .T = 128, .seed = seed};
  options.schedule = {.peak = 4e-3f, .floor = 4e-4f, .warmup = steps / 10, .steps = steps};
  Trainer trainer(Model(config, draw_model(config, random)), options, train);

  print_section(fmt::format("A run of {} steps on the book's own pages", steps));
  print_paragraph(
      fmt::format("{} parameters learn from {} bytes; {} bytes, every tenth passage, are held out.",
                  with_commas(total(count_parameters(config))), with_commas(train.size()),
                  with_commas(held_out.size())));
  fmt::print("\n");
  constexpr std::size_t measured = 96;  // windows of the held-out text
  const double before = trainer.loss_of(held_out, measured);
  LossCurve curve;
  for (std::size_t n = 0; n < steps; ++n) curve.push_back({trainer.step()});
  fmt::print("{}\n", drawing_of(curve, 60, 8));
  const double after = trainer.loss_of(held_out, measured);
  print_paragraph(
      fmt::format("Held-out loss, in nats per byte: {:.3f} before, {:.3f} after. A model that only "
                  "counts sequences of up to five bytes in the same text reaches {:.3f}; --run "
                  "passes it in some minutes.",
                  before, after, ngram_loss(NgramModel(train, 256), held_out)));
  fmt::print("\n  Given \"The model \", it continues, with a temperature of 0.7:\n\n");
  const std::string said =
      continued(trainer.model(), byte_ids("The model "), 100, {.temperature = 0.7f}, seed);
  print_paragraph("  The model " + visible(said));
  show_memory(trainer);
  show_step_speed(trainer);
  return curve;
}

}  // namespace t2t
