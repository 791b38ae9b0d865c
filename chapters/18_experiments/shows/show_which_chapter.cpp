#include "18_experiments/shows/show_which_chapter.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "01_embedding/embedding.hpp"
#include "13_training/program/chosen_text.hpp"
#include "13_training/text/training_text.hpp"
#include "13_training/trainer/trainer.hpp"
#include "18_experiments/changes/block_changes.hpp"
#include "18_experiments/changes/masking.hpp"
#include "18_experiments/encoders/which_chapter.hpp"
#include "program/print.hpp"
#include "program/progress.hpp"
#include "timing/measure.hpp"

namespace t2t {

static constexpr std::size_t B = 16, T = 64, most_windows = 40;
static constexpr std::size_t of_language = 1500, of_classes = 1000,
                             all_steps = of_language + of_classes;

/// The prose of each chapter's pages, as bytes, learned and held out.
struct ChapterTexts {
  std::vector<std::vector<int>> train, held_out;
  std::vector<int> all;  // of train, one after the other
};
static ChapterTexts chapters() {
  std::vector<std::filesystem::path> pages;
  for (const auto& entry : std::filesystem::directory_iterator(pages_folder()))
    pages.push_back(entry.path());
  std::ranges::sort(pages);
  ChapterTexts all;
  for (int number = 1; number <= 13; ++number) {
    std::string text;
    for (const std::filesystem::path& page : pages)
      if (page.filename().string().starts_with(fmt::format("{:02}_", number)))
        text += text_of_file(page) + "\n\n";
    const SplitText split = split_by_passage(text, 5);
    all.train.push_back(byte_ids(split.train));
    all.held_out.push_back(byte_ids(split.held_out));
    all.all.insert(all.all.end(), all.train.back().begin(), all.train.back().end());
  }
  return all;
}

struct MaskSide {
  std::string name;
  bool causal;
};
struct MaskResult {
  double share, ms;
};

static MaskResult train(const MaskSide& side, const ChapterTexts& texts, std::uint64_t seed) {
  const Config config{
      .block = llama_style(64, 4, 4, 170), .L = 4, .V = 256, .T_max = T, .tied = true};
  Random random(seed);
  TrainingOptions options{
      .B = B, .T = T, .schedule = {2e-3f, 2e-4f, all_steps / 10, all_steps}, .seed = seed};
  const TrainingFunctions functions = functions_of({.causal = side.causal});
  TrainingHooks hooks{.functions = functions};
  if (!side.causal)
    hooks.prepare = [](Batch& batch, std::uint64_t seed) { hide_tokens(batch, 0.4f, seed); };
  Trainer trainer(Model(config, draw_model(config, random)), options, texts.all, hooks);
  Random windows(seed, 1);
  Batch batch = make_batch(B, T);
  const auto began = std::chrono::steady_clock::now();
  for (std::size_t n = 0; n < all_steps; ++n) {
    if (n >= of_language) draw_windows(batch, texts.train, windows);
    const StepReport step = n < of_language ? trainer.step() : trainer.step_on(batch);
    if (n % 25 == 0)
      show_progress(fmt::format("  {}, seed {}, {}  loss {:.3f} ", side.name, seed,
                                steps_done(n, all_steps), step.loss));
  }
  const double seconds = seconds_since(began);
  show_progress(fmt::format("  {}, seed {}, held-out windows ", side.name, seed));
  Gradients passes(config, 1, T, functions);
  return {share_recognized(trainer.model(), passes, T, texts.held_out, most_windows),
          1e3 * seconds / double(all_steps)};
}

int show_which_chapter(std::size_t seeds) {
  const ChapterTexts texts = chapters();
  std::size_t windows = 0;
  for (const std::vector<int>& text : texts.held_out)
    windows += std::min(most_windows, text.size() / (T - 1));
  print_section("which-chapter: from which of the 13 chapters are these bytes?");
  print_paragraph(fmt::format(
      "For {} steps of {} windows of {} bytes, the model learns the text: the next byte, "
      "or 40 of 100 bytes that are masked. Then for {} steps it learns the chapter of "
      "{} bytes, at a position after them. {} windows are held out.",
      of_language, B, T, of_classes, T - 1, windows));
  fmt::print("\n");
  Table table({"model", ">recognized, mean", ">least", ">most", ">ms per step"});
  const auto percent = [](double share) { return fmt::format("{:.1f} %", 100 * share); };
  for (const MaskSide& side :
       {MaskSide{"causal", true}, MaskSide{"each byte sees all others", false}}) {
    double sum = 0, least = 1, most = 0, ms = 0;
    for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
      const MaskResult result = train(side, texts, seed);
      sum += result.share, ms += result.ms;
      least = std::min(least, result.share), most = std::max(most, result.share);
    }
    table.add({side.name, percent(sum / double(seeds)), percent(least), percent(most),
               fmt::format("{:.1f}", ms / double(seeds))});
  }
  show_progress("");
  table.add({"counts of up to 5 bytes",
             percent(share_recognized_by_counts(texts.train, T, texts.held_out, most_windows)), "",
             "", ""});
  table.add({"guessing", percent(1 / double(texts.train.size())), "", "", ""});
  table.print();
  return 0;
}

}  // namespace t2t
