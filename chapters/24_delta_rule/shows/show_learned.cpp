#include "24_delta_rule/shows/show_learned.hpp"

#include <fmt/format.h>

#include <vector>

#include "program/print.hpp"
#include "program/progress.hpp"

namespace t2t {

/// What both layers keep of one sequence.
static std::size_t kept_of(const RecallOptions& options) {
  std::size_t elements = 0;
  for (const Mixer mixer : mixers_of(options.kind))
    elements += kept_elements(mixer, recall_sizes(), options.task.T());
  return elements;
}

int show_learned(const RecallOptions& options) {
  const std::size_t kept = kept_of(options);
  const RecallResult result = learn_recall(options, [&](const RecallResult& so_far) {
    show_progress(
        fmt::format("  step {}: {:.2f} of the held-out values found", so_far.steps, so_far.share));
  });
  show_progress("");
  print_section(fmt::format("Recall after training: {}", options.kind));
  Table table({">pairs", ">written", ">tokens", ">found"});
  const std::vector<std::size_t> pairs = pairs_up_to(options.task.pairs);
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const PairsTask task{.pairs = pairs[i], .times = options.task.times};
    table.add({fmt::to_string(task.pairs), fmt::to_string(task.times), fmt::to_string(task.T()),
               fmt::format("{:.3f}", result.by_pairs[i])});
  }
  table.print();
  fmt::print("\n");
  print_paragraph(fmt::format(
      "found: the share of the values of 128 held-out sequences that the model names; a guess "
      "finds "
      "1 in {}. It was trained for {} steps with seed {}. Of {} tokens, its two layers keep {} "
      "elements.",
      options.task.symbols, result.steps, options.seed, options.task.T(), with_commas(kept)));
  return 0;
}

}  // namespace t2t
